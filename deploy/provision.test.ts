import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { streamName } from '@app/shared/events/stream.ts'
import { expect, onTestFinished, test } from 'vitest'
import { provisionAt } from './provision.ts'
import { startServers } from './servers/start-servers.ts'
import { withBus } from './stack/bus.ts'

/** One nats-server, and nothing in it. */
async function startNats() {
  const dataDir = mkdtempSync(join(tmpdir(), 'provision-'))
  const { natsUrl, stop } = await startServers({ dataDir, log: () => {}, only: ['nats'], temporary: true })
  onTestFinished(async () => {
    await stop()
    rmSync(dataDir, { recursive: true })
  })
  return natsUrl
}

test("a stream of another program that has our stream's name is left as it is", async () => {
  const natsUrl = await startNats()
  await withBus({ natsUrl }, async ({ nc }) => {
    const { streams } = await nc.jetstreamManager()
    const { config } = await streams.add({ name: streamName, subjects: ['orders.>'] })
    await expect(provisionAt({ natsUrl })).rejects.toThrow('The stream EVENTS of this server is of another program')
    expect((await streams.info(streamName)).config).toEqual(config)
  })
})

test('more copies than one server can hold are refused, also of a stream that is there, and it is left as it is', async () => {
  const natsUrl = await startNats()
  const refusal = 'NATS_REPLICAS is 3, and this nats-server is in no cluster.'
  await expect(provisionAt({ natsUrl }, 3)).rejects.toThrow(refusal)
  await provisionAt({ natsUrl })
  await expect(provisionAt({ natsUrl }, 3)).rejects.toThrow(refusal)
  await withBus({ natsUrl }, async ({ nc }) => {
    const { streams } = await nc.jetstreamManager()
    expect((await streams.info(streamName)).config.num_replicas).toBe(1)
  })
})
