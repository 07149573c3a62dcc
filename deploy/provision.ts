import { provision } from '@app/shared/events/provision.ts'
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
export const provisionAt = (place: BusPlace, replicas?: number): Promise<void> =>
  withBus(place, ({ nc }) => patiently(() => provision(nc, { replicas }), mayPass))

/** The server's own code for "no suitable peers for placement". */
const tooFewServers = 10_005

function mayPass(err: unknown) {
  if (!(err instanceof NatsError)) return false
  const { code, api_error: error } = err
  if (error) return error.code === 503 || error.err_code === tooFewServers
  return code === ErrorCode.Timeout || code === ErrorCode.NoResponders
}

async function main() {
  refuseWords(process.argv.slice(2))
  const { NATS_URL: natsUrl, NATS_NKEY_SEED: natsSeed, NATS_REPLICAS: replicas } = process.env
  if (!natsUrl) throw new Error('NATS_URL is not set: the address of the nats-server, such as nats://127.0.0.1:4222.')
  await provisionAt({ natsUrl, natsSeed: natsSeed || undefined }, replicas ? readCopies(replicas) : undefined)
  console.log('Streams and consumers are there.')
}

if (import.meta.main) await runAndEnd(main)
