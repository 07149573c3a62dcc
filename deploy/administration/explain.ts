import { Problem } from '@app/shared/api/problem.ts'
import { explains, type Moment } from '@app/shared/contracts/explain.ts'
import { parseOnce } from '../command-line.ts'
import type { Bus } from '../stack/bus.ts'
import { kindOf } from './kinds.ts'
import { requestMoments } from './message-history.ts'
import { type Asking, askingOf, orNull } from './asking.ts'

/** What the records know, in the order in which it was. */
interface Explained {
  id: string
  history: Moment[]
  /** Who did not answer, and why: what they know is missing. */
  unanswered?: string[]
}

export const explainUsages = ['explain ID', 'explain --organization … --key …']

/** The whole life of what the words after `explain` name. Throws a sentence about what is missing or unknown. */
export function explain(words: string[], requestId: string): (bus: Bus) => Promise<Explained> {
  const { id, organization, key } = read(words)
  const kind = id === undefined ? null : kindOf(id)
  return async (bus) => {
    const asking = askingOf(bus, requestId)
    const name = id ?? key ?? ''
    const asked = kind ? kind.history(asking, name) : keyHistory(asking, organization ?? '', name)
    const history = await known(asked, asking, name, kind?.looked ?? keysLooked)
    const unanswered = [...asking.unanswered.keys()]
    return { id: name, history: history.toSorted(byTime), ...(unanswered.length > 0 && { unanswered }) }
  }
}

/** How things stand now comes last. */
const byTime = (a: Moment, b: Moment) => (a.at ?? '9').localeCompare(b.at ?? '9')

function read(words: string[]) {
  const usage = `Usage: ${explainUsages.join('; or ')}`
  const options = { organization: { type: 'string' }, key: { type: 'string' } } as const
  const { values, positionals } = parseOnce({ args: words, options, allowPositionals: true }, ` ${usage}`)
  const { organization, key } = values
  const [id, ...more] = positionals
  const isKey = organization !== undefined && key !== undefined
  const isId = organization === undefined && key === undefined
  if (more.length === 0 && (id === undefined ? isKey : isId)) return { id, organization, key }
  throw new Error(`What is to be explained? ${usage}`)
}

async function known(asked: Promise<Moment[]>, { unanswered }: Asking, name: string, looked: string) {
  const history = await orNull(asked)
  const [silent] = unanswered.values()
  if (silent && !history?.length) throw silent
  if (history) return history
  throw new Problem('resource_not_found', { message: `Nothing is known of "${name}". Looked for: ${looked}.` })
}

const keysLooked =
  'the keys of this organization, which are kept for 24 hours; a request that was refused leaves none, and may be made again with its key'

/** What the key was used for, and the request that it answered. */
async function keyHistory(asking: Asking, organization: string, key: string): Promise<Moment[]> {
  const use = await useOf(asking, { organization_id: organization, key })
  if (!use) throw new Problem('resource_not_found')
  const { request_id: requestId, history } = use
  return requestId === null ? history : [...(await requestMoments(asking, requestId)), ...history]
}

/** As whoever has it tells: all know the same where they share a database, and each its own where they do not. */
async function useOf({ ask }: Asking, body: { organization_id: string; key: string }) {
  for (const { explainIdempotencyKey } of Object.values(explains)) {
    const use = await orNull(ask(explainIdempotencyKey, body))
    if (use) return use
  }
  return null
}
