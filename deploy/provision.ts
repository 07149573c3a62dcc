import { provision } from '@app/shared/provision.ts'
import { runCommand } from './command.ts'
import { type BusPlace, withBus } from './stack/bus.ts'

/** Declares the streams and consumers on the server at this address. */
export const provisionAt = (place: BusPlace, replicas = 1): Promise<void> =>
  withBus(place, ({ nc }) => provision(nc, { replicas }))

async function main() {
  const { NATS_URL: natsUrl, NATS_NKEY_SEED: natsSeed, NATS_REPLICAS: replicas = '1' } = process.env
  if (!natsUrl) throw new Error('NATS_URL is not set: the address of the nats-server, such as nats://127.0.0.1:4222.')
  await provisionAt({ natsUrl, natsSeed: natsSeed || undefined }, Number(replicas))
  console.log('Streams and consumers are there.')
}

if (import.meta.main) await runCommand(main)
