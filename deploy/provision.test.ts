import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ackWaitMs, consumers } from '@app/shared/events/provision.ts'
import { streamName } from '@app/shared/events/stream.ts'
import { DiscardPolicy } from 'nats'
import { expect, onTestFinished, test } from 'vitest'
import { provisionAt } from './provision.ts'
import { startServers } from './servers/start-servers.ts'
import { withBus } from './stack/bus.ts'
import { repository } from './stack/options.ts'

/** A folder for the data of one nats-server. */
function newFolder() {
  const dataDir = mkdtempSync(join(tmpdir(), 'provision-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  return dataDir
}

const startIn = (dataDir: string) => startServers({ dataDir, log: () => {}, only: ['nats'] })

/** One nats-server, and nothing in it. */
async function startNats() {
  const { natsUrl, stop } = await startIn(newFolder())
  onTestFinished(stop)
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

test('the program declares as many copies as NATS_REPLICAS says', async () => {
  const env = { ...process.env, NATS_URL: await startNats(), NATS_REPLICAS: '3' }
  const program = join(repository, 'deploy/provision.ts')
  const { status, stderr } = spawnSync(process.execPath, [program], { env, encoding: 'utf8' })
  expect([status, stderr]).toEqual([
    1,
    expect.stringContaining('NATS_REPLICAS is 3, and this nats-server is in no cluster.'),
  ])
})

test('a stream stays the one that was made, however often it is provisioned and its server is started', async () => {
  const dataDir = newFolder()
  const times: string[] = []
  for (let start = 0; start < 3; start++) {
    const { natsUrl, stop } = await startIn(dataDir)
    await provisionAt({ natsUrl })
    await withBus({ natsUrl }, async ({ nc }) => {
      const { streams } = await nc.jetstreamManager()
      times.push((await streams.info(streamName)).created)
    })
    await stop()
  }
  expect(new Set(times).size, times.join()).toBe(1)
})

test('every consumer is given an event as often as it takes', async () => {
  const natsUrl = await startNats()
  await provisionAt({ natsUrl })
  await withBus({ natsUrl }, async ({ nc }) => {
    const infos = await (await nc.jetstreamManager()).consumers.list(streamName).next()
    expect(infos).toHaveLength(Object.keys(consumers).length)
    for (const { config } of infos) expect(config).toMatchObject({ ack_policy: 'explicit', max_deliver: -1 })
  })
})

test('what somebody has set that takes events away is put back, and where and how they are kept is left', async () => {
  const natsUrl = await startNats()
  await provisionAt({ natsUrl })
  await withBus({ natsUrl }, async ({ nc }) => {
    const { streams, consumers: ours } = await nc.jetstreamManager()
    const { name } = consumers.webhooksFanOut
    const before = await ours.info(streamName, name)
    const limits = { discard: DiscardPolicy.New, discard_new_per_subject: true, max_msgs_per_subject: 1 }
    const kept = { description: 'of the company', allow_direct: true, placement: { tags: ['ssd'] } }
    const more = { max_msgs: 1_000, max_msg_size: 1_000, no_ack: true, max_age: 60e9, duplicate_window: 60e9 }
    await streams.update(streamName, { ...limits, ...more, ...kept } as object)
    const pulls = { headers_only: true, inactive_threshold: 3_600e9, max_batch: 10, max_expires: 1e9 }
    await ours.update(streamName, name, { ...pulls, max_deliver: 5, backoff: [1e9, 2e9] } as object)
    await provisionAt({ natsUrl })
    const { config } = await streams.info(streamName)
    const unlimited = { max_msgs: -1, max_msgs_per_subject: -1, max_msg_size: -1, discard: 'old' }
    expect(config).toMatchObject({ ...kept, ...unlimited, max_age: 3 * 24 * 3_600e9 })
    expect([config.no_ack, config.discard_new_per_subject]).not.toContain(true)
    expect((await ours.info(streamName, name)).config).toEqual(before.config)
  })
})

test.each([
  ['disabled', 'No JetStream answers: it must be on at this nats-server, and for the account of our users.'],
  [
    '{ max_file: 1GB }',
    'This nats-server refuses the stream EVENTS, or a consumer of it: insufficient storage resources available. ' +
      'The account of our users needs room for one stream of 8 GiB in files for each copy, and 10 consumers ' +
      'with 4096 unacknowledged messages.',
  ],
])('an account whose JetStream is %s is told what it needs', async (jetstream, refusal) => {
  const users = 'users: [{ user: us, password: word }]'
  const natsAuthorization = `no_auth_user: us\naccounts { OURS { jetstream: ${jetstream}, ${users} } }`
  const { natsUrl, stop } = await startServers({
    dataDir: newFolder(),
    log: () => {},
    only: ['nats'],
    natsAuthorization,
  })
  onTestFinished(stop)
  await expect(provisionAt({ natsUrl }, undefined, 1_000)).rejects.toThrow(refusal)
})

test('a consumer of an earlier release is changed, also when its server was started since', async () => {
  const dataDir = newFolder()
  const { name } = consumers.webhooksFanOut
  const first = await startIn(dataDir)
  await provisionAt(first)
  await withBus(first, async ({ nc }) => {
    const jsm = await nc.jetstreamManager()
    await jsm.consumers.update(streamName, name, { ack_wait: 30e9 })
  })
  await first.stop()
  const second = await startIn(dataDir)
  onTestFinished(second.stop)
  await provisionAt(second)
  await withBus(second, async ({ nc }) => {
    const jsm = await nc.jetstreamManager()
    expect((await jsm.consumers.info(streamName, name)).config.ack_wait).toBe(ackWaitMs * 1e6)
  })
})
