import { lookup, Resolver } from 'node:dns/promises'

/** All addresses of a name. */
export type Resolve = (name: string) => Promise<string[]>

/** The name servers say that there is no such name or record, or are not there at all: then the system may know more. */
const passedOn = new Set(['ENOTFOUND', 'ENODATA', 'ECONNREFUSED'])

/**
 * Asks the name servers themselves, without a thread: `getaddrinfo` has four for the whole process, and four names whose
 * servers are slow would hold up every other connection. Only a name that they do not know goes on to the system, for its
 * hosts file.
 */
export function createResolve({ timeoutMs = 1_500, tries = 2 } = {}): Resolve {
  const resolver = new Resolver({ timeout: timeoutMs, tries })
  return async (name) => {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    if (found.length > 0) return found
    const trouble = answers.find((answer) => answer.status === 'rejected' && !passedOn.has(codeOf(answer.reason)))
    if (trouble?.status === 'rejected') throw trouble.reason
    const entries = await lookup(name, { all: true })
    return entries.map(({ address }) => address)
  }
}

const codeOf = (err: unknown) => (err instanceof Error && 'code' in err ? String(err.code) : '')
