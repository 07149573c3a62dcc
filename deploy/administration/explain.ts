import { Problem } from '@app/shared/api/problem.ts'
import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { explainIdempotencyKey, type Moment } from '@app/shared/contracts/explain.ts'
import { parseOnce } from '../command-line.ts'
import type { Bus } from '../stack/bus.ts'
import { kindOf } from './kinds.ts'
import { requestMoments } from './message-history.ts'
import { type Asking, orNull } from './asking.ts'

/** What the records know, in the order in which it was. */
interface Explained {
  id: string
  history: Moment[]
}

export const explainUsages = ['explain ID', 'explain --organization … --key …']

/** The whole life of what the words after `explain` name. Throws a sentence about what is missing or unknown. */
export function explain(words: string[], requestId: string): (bus: Bus) => Promise<Explained> {
  const { id, organization, key } = read(words)
  const kind = id === undefined ? null : kindOf(id)
  return async (bus) => {
    const asking = { bus, caller: systemCaller('', requestId) }
    const history = kind
      ? await known(kind.history(asking, id ?? ''), id ?? '', kind.looked)
      : await known(keyHistory(asking, organization ?? '', key ?? ''), key ?? '', keysLooked)
    return { id: id ?? key ?? '', history: history.toSorted(byTime) }
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

async function known(asked: Promise<Moment[]>, name: string, looked: string): Promise<Moment[]> {
  const history = await orNull(asked)
  if (history) return history
  throw new Problem('resource_not_found', { message: `Nothing is known of "${name}". Looked for: ${looked}.` })
}

const keysLooked =
  'the keys of this organization, which are kept for 24 hours; a request that was refused leaves none, and may be made again with its key'

/** What the key was used for, and the request that it answered. */
async function keyHistory({ bus, caller }: Asking, organization: string, key: string): Promise<Moment[]> {
  const body = { organization_id: organization, key }
  const { request_id: requestId, history } = await call(bus, explainIdempotencyKey, { body }, caller)
  return requestId === null ? history : [...(await requestMoments({ bus, caller }, requestId)), ...history]
}
