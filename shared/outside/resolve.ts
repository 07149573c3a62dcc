import { Resolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { inTime } from '../work/overdue.ts'
import { EgressError } from './egress-error.ts'

/** All addresses of a name; none where nobody knows it. */
export type Resolve = (name: string) => Promise<string[]>

/** Of all tries together, of all name servers. */
const patienceMs = 4_500

interface ResolveOptions {
  /** Of the first try; that of the next is twice as long. */
  timeoutMs?: number
  tries?: number
  /** Instead of those of the system. */
  servers?: string[]
  hostsFile?: string
  resolverFile?: string
}

/**
 * Asks the name servers itself, without a thread: `getaddrinfo` has two for slow names in the whole process, no limit of time
 * that we could set, and is what every other connection needs. A name server of a stranger can say that there is no such name
 * and be silent the next time. So what `getaddrinfo` knows beside the name servers is read here: the hosts file, as it is at
 * the moment, and the search domains, below which a service of Kubernetes has its short name.
 *
 * Silence ends before the time for a connection does, which would be held against the address. It is the name's own fault where
 * others were answered once a whole try had passed: its servers are silent, and so is ours, which asks them. Else ours is away.
 */
export function createResolve({
  timeoutMs = 1_500,
  tries = 2,
  servers,
  hostsFile = '/etc/hosts',
  resolverFile = '/etc/resolv.conf',
}: ResolveOptions = {}): Resolve {
  const resolver = new Resolver({ timeout: timeoutMs, tries })
  if (servers) resolver.setServers(servers)
  /** Monotonic: when a name server said something last, whatever it was. */
  let heardAt = -Infinity

  async function answered(question: Promise<string[]>): Promise<string[]> {
    try {
      const addresses = await inTime(question, patienceMs)
      heardAt = performance.now()
      return addresses
    } catch (err) {
      if (!isSilence(err)) heardAt = performance.now()
      throw err
    }
  }

  async function ask(name: string): Promise<string[]> {
    const askedAt = performance.now()
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)].map(answered))
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    if (found.length > 0) return found
    const trouble = answers.find((answer) => answer.status === 'rejected' && !unknown.has(codeOf(answer.reason)))
    if (trouble?.status !== 'rejected') return []
    if (!isSilence(trouble.reason)) throw trouble.reason
    const isOurs = heardAt - askedAt <= timeoutMs
    throw new EgressError('dns_error', 'The name servers are silent.', { isOurs, cause: trouble.reason })
  }

  return async (name) => {
    const own = addressesIn(await linesOf(hostsFile), name)
    if (own.length > 0) return own
    const found = await ask(name)
    if (found.length > 0) return found
    for (const domain of searchedIn(await linesOf(resolverFile))) {
      const below = await ask(`${name}.${domain}`)
      if (below.length > 0) return below
    }
    return []
  }
}

/** The name servers say that there is no such name or record. */
const unknown = new Set(['ENOTFOUND', 'ENODATA'])

/** No name server said anything in time, or none is there. When our own patience ends, there is no code. */
const isSilence = (err: unknown) => ['ETIMEOUT', 'ECONNREFUSED', ''].includes(codeOf(err))

const codeOf = (err: unknown) => (err instanceof Error && 'code' in err ? String(err.code) : '')

/** The words of each line, without comments. A file that cannot be read has none. */
async function linesOf(file: string): Promise<string[][]> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.split('\n').map((line) =>
    line
      .replace(/[#;].*/, '')
      .split(/\s+/)
      .filter(Boolean),
  )
}

const addressesIn = (lines: string[][], name: string) =>
  lines
    .filter(
      ([address = '', ...names]) => isIP(address) && names.some((one) => one.toLowerCase() === name.toLowerCase()),
    )
    .map(([address = '']) => address)

/** The last line of them holds. */
const searchedIn = (lines: string[][]) =>
  (lines.findLast(([word]) => word === 'search' || word === 'domain') ?? [])
    .slice(1)
    .map((domain) => domain.replace(/\.$/, ''))
    .filter(Boolean)
