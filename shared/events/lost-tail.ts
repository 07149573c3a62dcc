import { headers } from 'nats'
import type { DataService } from '../service/service.ts'
import { askAgainMs, isOurs, managerOf } from './provision.ts'
import { readPublishAck, streamName } from './stream.ts'

// A nats-server that does not force every event onto the disk (`sync_interval`) loses the newest ones with its power, and what
// is published next gets their numbers.

const ackTimeoutMs = 2_000
const batchSize = 256
/** No stream will ever have this many events. */
const never = String(Number.MAX_SAFE_INTEGER)

/** The subject of an event that only uses up a number. Consumers pass it over (consume.ts). */
const gapSubject = (service: string) => `event.${service}.gap`
export const isGap = (subject: string) => subject.endsWith('.gap')

type Ways = Pick<DataService, 'eventBus' | 'name' | 'log'>

/**
 * A consumer that has handled numbers which the stream has lost would pass over what is published under them: so these numbers are used
 * up. Whoever publishes does this first on each connection, so that none of them is given to a real event.
 */
export async function useUpHandledNumbers(ways: Ways): Promise<void> {
  const { eventBus, log } = ways
  const jsm = await managerOf(eventBus.nc, askAgainMs)
  // Before the stream is asked: a consumer goes on meanwhile, and is never ahead of what is asked later.
  const all = await jsm.consumers.list(streamName).next()
  const { state } = await jsm.streams.info(streamName)
  const ours = all.filter((one) => isOurs(one.name))
  const handled = Math.max(0, ...ours.map(({ delivered }) => delivered.stream_seq))
  if (handled <= state.last_seq) return
  log.warn({ lastSeq: state.last_seq, handled }, 'the stream lost its newest events: their numbers are used up')
  for (let last = state.last_seq; last < handled;) {
    const count = Math.min(batchSize, handled - last)
    last = Math.max(last, ...(await Promise.all(Array.from({ length: count }, () => takeNumber(ways)))))
  }
}

async function takeNumber({ eventBus, name }: Ways) {
  const { seq, error } = await publish(eventBus, gapSubject(name), undefined)
  if (error || !seq) throw new Error(`The stream gives no number: ${error?.description ?? 'no error'}`)
  return seq
}

/** An event of ours, by the subject that only we publish to. */
interface Newest {
  subject: string
  seq: number
}

/**
 * Whether the stream still has our newest event, or has dropped it for its age. Others may have published under its number since, so we
 * ask for the last number of its subject: an event that expects another number is refused, and the refusal names it. Undefined while
 * another instance publishes, and no number is sure.
 */
export async function hasNewest({ eventBus, log }: Ways, { subject, seq }: Newest): Promise<boolean | undefined> {
  const { error } = await publish(eventBus, subject, never)
  if (isUnsure(error?.err_code)) {
    log.warn({ subject, error }, 'the stream does not say yet what it has last')
    return undefined
  }
  const last = /wrong last sequence: (\d+)/.exec(error?.description ?? '')?.[1]
  if (last === undefined)
    throw new Error(`The stream does not say what it has last: ${error?.description ?? 'no error'}`)
  if (Number(last) >= seq) return true
  const jsm = await managerOf(eventBus.nc, askAgainMs)
  const { state } = await jsm.streams.info(streamName)
  return state.first_seq > seq
}

/**
 * "expected last sequence per subject temporarily unavailable" and, without a number, "wrong last sequence" (nats-server, `errors.json`):
 * a cluster since 2.12 knows of an event of the subject that is not yet on a majority of the servers.
 */
const isUnsure = (errorCode: number | undefined) => errorCode === 10_163 || errorCode === 10_164

/** Publishes an empty event; `lastOfSubject` is the number that it expects to be the last one of its subject. */
async function publish({ request }: Ways['eventBus'], subject: string, lastOfSubject: string | undefined) {
  const carrier = headers()
  carrier.set('Nats-Expected-Stream', streamName)
  if (lastOfSubject !== undefined) carrier.set('Nats-Expected-Last-Subject-Sequence', lastOfSubject)
  const { data } = await request(subject, Buffer.alloc(0), carrier, ackTimeoutMs)
  return readPublishAck(data)
}
