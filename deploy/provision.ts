import { consumers, maxAckPending, provision } from '@app/shared/events/provision.ts'
import { streamBytes, streamName } from '@app/shared/events/stream.ts'
import { ErrorCode, NatsError } from 'nats'
import { runAndEnd } from './command.ts'
import { refuseWords } from './command-line.ts'
import { patiently } from './patiently.ts'
import { type BusPlace, withBus } from './stack/bus.ts'
import { readCopies } from './stack/options.ts'

/**
 * Declares the streams and consumers on the servers at this address; waits for a cluster that is not whole just now: one that
 * lost a server elects for ten seconds, one that starts waits for its third.
 */
export const provisionAt = (place: BusPlace, replicas?: number, patienceMs?: number): Promise<void> =>
  withBus(place, ({ nc }) =>
    patiently(() => provision(nc, { replicas }), mayPass, patienceMs).catch((err: unknown) => {
      throw inWords(err)
    }),
  )

/** The server's own code for "no suitable peers for placement". */
const tooFewServers = 10_005

function mayPass(err: unknown) {
  if (!(err instanceof NatsError)) return false
  const { code, api_error: error } = err
  if (error) return error.code === 503 || error.err_code === tooFewServers
  return code === ErrorCode.Timeout || code === ErrorCode.NoResponders
}

/** "JetStream not enabled", by the server or for the account (nats-server, `errors.json`). */
const notEnabled: unknown[] = [10_076, 10_039]

/** What the server says names neither itself nor what it lacks. */
function inWords(err: unknown) {
  if (!(err instanceof NatsError)) return err
  const { code, api_error: error } = err
  if (code === ErrorCode.NoResponders || notEnabled.includes(error?.err_code))
    return new Error('No JetStream answers: it must be on at this nats-server, and for the account of our users.')
  if (!error) return err
  return new Error(
    `This nats-server refuses the stream ${streamName}, or a consumer of it: ${error.description}. The account of our users needs room ` +
      `for one stream of ${streamBytes / 1024 ** 3} GiB in files for each copy, and ${Object.keys(consumers).length} consumers with ` +
      `${maxAckPending} unacknowledged messages.`,
    { cause: err },
  )
}

async function main() {
  refuseWords(process.argv.slice(2))
  const { NATS_URL: natsUrl, NATS_NKEY_SEED: natsSeed, NATS_REPLICAS: replicas } = process.env
  if (!natsUrl) throw new Error('NATS_URL is not set: the address of the nats-server, such as nats://127.0.0.1:4222.')
  await provisionAt({ natsUrl, natsSeed: natsSeed || undefined }, replicas ? readCopies(replicas) : undefined)
  console.log('Streams and consumers are there.')
}

if (import.meta.main) await runAndEnd(main)
