import { answerCommand } from '@app/deploy/administration/answer.ts'
import { type Bus, withBus } from '@app/deploy/stack/bus.ts'
import type { SealedCount } from '@app/shared/contracts/secrets.ts'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startTestNats, type TestNats } from './nats.ts'

let nats: TestNats
beforeAll(async () => {
  nats = await startTestNats()
  vi.spyOn(console, 'error').mockImplementation(() => {})
})
afterAll(async () => {
  vi.restoreAllMocks()
  await nats.stop()
})

const connected = <T>(work: (bus: Bus) => Promise<T>) => withBus({ natsUrl: nats.url }, work)
const asked = (what: 'count' | 'reseal') => answerCommand(['secrets', what], 'req_1', connected)

const sealed = (table: string, key: string, state: SealedCount['state'], count = 1) => ({ table, key, state, count })

type Answer = (body: unknown) => unknown
type Answers = Partial<Record<'count-secrets' | 'reseal-secrets', Answer>>

/** Instances of a service with these keys; it answers as it is told to, and else that it has sealed nothing. */
async function startService({ nc }: Bus, name: string, rings: string[], answers: Answers = {}) {
  for (const ring of rings) await nc.services.add({ name, version: '1.0.0', metadata: { seal_keys: ring } })
  const nothing = { 'count-secrets': () => ({ counts: [] }), 'reseal-secrets': () => sealedAgain(0) }
  for (const [question, answer] of Object.entries({ ...nothing, ...answers }))
    nc.subscribe(`rpc.${name}.${question}`, {
      callback: (_err, message) => {
        const body: unknown = message.data.length > 0 ? message.json() : undefined
        message.respond(JSON.stringify({ data: answer(body) }))
      },
    })
}

const sealedAgain = (resealed: number, next: unknown = null, unopened = 0) => ({ resealed, unopened, next })

test('counts once what several services tell of, and keeps each key that something needs', async () => {
  await connected(async (bus) => {
    const shared = sealed('idempotency.answers', 'k2', 'old', 3)
    const counts = () => ({ counts: [shared] })
    await startService(bus, 'platform', ['k3,k2,k1', 'k3,k2,k1'], { 'count-secrets': counts })
    await startService(bus, 'messaging', ['k3,k2,k1'], { 'count-secrets': counts })
    await startService(bus, 'webhooks', ['k3,k2,k1'])
    expect(await asked('count')).toEqual({
      instances: {
        platform: ['k3', 'k3'].map((key) => [key, 'k2', 'k1']),
        messaging: [['k3', 'k2', 'k1']],
        webhooks: [['k3', 'k2', 'k1']],
      },
      secrets: [{ service: 'platform', ...shared }],
      // The current one is needed by what will be sealed.
      removable: ['k1'],
    })
  })
})

test('an instance that says its keys a moment after another is heard', async () => {
  await connected(async (bus) => {
    for (const name of ['platform', 'messaging', 'webhooks']) await startService(bus, name, ['k2,k1'])
    const late = JSON.stringify({ metadata: { seal_keys: 'k1' } })
    bus.nc.subscribe('$SRV.INFO.webhooks', {
      callback: (_err, message) => void setTimeout(() => message.respond(late), 100),
    })
    expect(await asked('count')).toMatchObject({ instances: { webhooks: [['k2', 'k1'], ['k1']] }, removable: [] })
  })
})

test('nothing is sealed again while instances seal with different keys, or some do not say', async () => {
  await connected(async (bus) => {
    const reseal = vi.fn<Answer>(() => sealedAgain(1))
    await startService(bus, 'platform', ['k2,k1'], { 'reseal-secrets': reseal })
    await startService(bus, 'messaging', ['k2,k1', 'k1'])
    await startService(bus, 'webhooks', [])
    await expect(asked('reseal')).rejects.toThrow('No instance of webhooks says which keys it has.')
    await startService(bus, 'webhooks', ['k2,k1'])
    await expect(asked('reseal')).rejects.toThrow('platform seals with the key "k2", messaging with "k1".')
    expect(reseal).not.toHaveBeenCalled()
  })
})

test('seals again batch by batch, and once more while something is left', async () => {
  await connected(async (bus) => {
    const place = { table: 'accounts', key: 'k1', row: ['1'] }
    // The last row of the first round is locked, and sealed in the second.
    const batches = [sealedAgain(2, place), sealedAgain(1, null, 1), sealedAgain(1)]
    const left = () => ({ counts: batches.length > 0 ? [sealed('accounts', 'k1', 'old')] : [] })
    const reseal = vi.fn<Answer>(() => batches.shift())
    await startService(bus, 'platform', ['k2,k1'], { 'count-secrets': left, 'reseal-secrets': reseal })
    for (const name of ['messaging', 'webhooks']) await startService(bus, name, ['k2,k1'])
    expect(await asked('reseal')).toMatchObject({
      current: 'k2',
      resealed: 4,
      // As of the last round.
      unopened: 0,
      secrets: [],
      removable: ['k1'],
    })
    expect(reseal.mock.calls).toEqual([null, place, null].map((after) => [{ current: 'k2', after }]))
  })
})

test('what opens with no key is counted over all services, and its key stays', async () => {
  await connected(async (bus) => {
    const counts = () => ({ counts: [sealed('accounts', 'k1', 'old')] })
    const keeping = { 'count-secrets': counts, 'reseal-secrets': () => sealedAgain(0, null, 1) }
    for (const name of ['platform', 'messaging']) await startService(bus, name, ['k2,k1'], keeping)
    await startService(bus, 'webhooks', ['k2,k1'])
    expect(await asked('reseal')).toMatchObject({ resealed: 0, unopened: 2, removable: [] })
  })
})
