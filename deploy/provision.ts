import { provision } from '@app/shared/provision.ts'
import { runCommand } from './command.ts'
import { withBus } from './stack/bus.ts'

/** Declares the streams and consumers on the server at this address. */
export const provisionAt = (natsUrl: string, replicas = 1): Promise<void> =>
  withBus(natsUrl, ({ nc }) => provision(nc, { replicas }))

async function main() {
  const { NATS_URL: url, NATS_REPLICAS: replicas = '1' } = process.env
  if (!url) throw new Error('NATS_URL is not set: the address of the nats-server, such as nats://127.0.0.1:4222.')
  await provisionAt(url, Number(replicas))
  console.log('Streams and consumers are there.')
}

if (import.meta.main) await runCommand(main)
