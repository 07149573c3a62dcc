import { Resolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { EgressError } from './egress-error.ts'

/** All addresses of a name; none where nobody knows it. */
export type Resolve = (name: string) => Promise<string[]>

interface ResolveOptions {
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
  return async (name) => {
    const own = addressesIn(await linesOf(hostsFile), name)
    if (own.length > 0) return own
    const found = await ask(resolver, name)
    if (found.length > 0) return found
    for (const domain of searchedIn(await linesOf(resolverFile))) {
      const below = await ask(resolver, `${name}.${domain}`)
      if (below.length > 0) return below
    }
    return []
  }
}

/** The name servers say that there is no such name or record. */
const unknown = new Set(['ENOTFOUND', 'ENODATA'])

async function ask(resolver: Resolver, name: string): Promise<string[]> {
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  if (found.length > 0) return found
  const trouble = answers.find((answer) => answer.status === 'rejected' && !unknown.has(codeOf(answer.reason)))
  if (trouble?.status !== 'rejected') return []
  // Of the name server: from here on it would be taken for one of the address.
  if (codeOf(trouble.reason) === 'ECONNREFUSED') throw serversAreAway(trouble.reason)
  throw trouble.reason
}

const serversAreAway = (cause: unknown) =>
  new EgressError('dns_error', 'The name servers are away.', { isOurs: true, cause })

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
