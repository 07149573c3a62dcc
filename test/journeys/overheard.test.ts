import { beforeAll, describe, test } from 'vitest'
import { readLog } from './overheard/log.ts'
import { askDirectoryOnce } from './overheard/questions.ts'
import { readLabels, readMetrics } from './overheard/metrics.ts'
import { overhear } from './overheard/overheard.ts'
import { raceRevocation } from './overheard/revocation.ts'
import { secretsStay } from './overheard/secrets.ts'
import { followTrace, goOnWithTrace } from './overheard/traces.ts'
import { watch, type Watched } from './overheard/watch.ts'

const own = overhear(['--replicas', 'gateway=3,platform=2'])

/** Goes on beside the other tests, since it waits for the most part. */
let asked: Promise<void>
beforeAll(() => {
  asked = askDirectoryOnce(own)
  asked.catch(() => {})
})

test(
  'no secret stands in the database, in the event stream, in Redis, in a log or a trace; on the bus each goes only where it is needed',
  { timeout: 120_000 },
  () => secretsStay(own),
)

test('of requests that race a revocation over three gateways, none that was sent after the revoking call returned succeeds, not even at one that was frozen meanwhile', () =>
  raceRevocation(own))

let watched: Watched
describe('what operators see', () => {
  beforeAll(async () => {
    watched = await watch(own)
  })

  test('one trace goes from the request through questions, outbox and events to the platform and the subscriber', () =>
    followTrace(watched))

  test("a client's own trace goes on, and one that it does not sample is left alone", () => goOnWithTrace(watched))

  test('every metric of the dashboard and the rules is there, and tells what has happened', () => readMetrics(watched))

  test('no label holds an id, a number or an address', () => readLabels(watched))
})

test('who was written to is written to again without a question, also after more than ten seconds', () => asked)

test('the log has a line for each request, question, event, attempt and part of a callback, in the same words, and nothing private', () =>
  readLog(watched))
