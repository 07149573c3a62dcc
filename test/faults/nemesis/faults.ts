import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServerName } from '@app/deploy/servers/kind.ts'
import { firstWords } from '@app/deploy/servers/probe.ts'
import type { Platform } from '../load/platform.ts'
import type { Subscriber } from '../load/subscriber.ts'
import { between, oneOf, type Random } from '../random.ts'
import type { Arena } from './arena.ts'
import { during } from './during.ts'
import { endSessions, makeReadOnly } from './superuser.ts'

export interface Ground {
  arena: Arena
  platform: Platform
  subscriber: Subscriber
}

/** What a fault is made of, chosen ahead: the service and instance it meets, and how long it lasts. */
export interface Aim {
  service: string
  instance: number
  server: ServerName
  forMs: number
  /** How far a clock is ahead, or behind. */
  skewMs: number
}

type Fault = (ground: Ground, aim: Aim) => Promise<unknown>

const serviceNames = ['gateway', 'messaging', 'messaging', 'directory', 'platform', 'webhooks', 'webhooks']

export const aimOf = (random: Random): Aim => ({
  service: oneOf(random, serviceNames),
  instance: between(random, 0, 1),
  server: oneOf(random, ['nats', 'postgres', 'redis']),
  forMs: between(random, 1_500, 5_000),
  skewMs: oneOf(random, [-90_000, 90_000]),
})

/** Everything that the nemesis does. Each is over, and undone, when it resolves. */
export const faults: Record<string, Fault> = {
  'kill an instance': async ({ arena }, { service, instance }) => signal(pidsOf(arena, service)[instance], 'SIGKILL'),
  'kill a whole service': async ({ arena }, { service }) =>
    pidsOf(arena, service).forEach((pid) => signal(pid, 'SIGKILL')),
  'end an instance in order': async ({ arena }, { service, instance }) =>
    signal(pidsOf(arena, service)[instance], 'SIGTERM'),
  'freeze an instance': ({ arena }, { service, instance, forMs }) => freeze(pidsOf(arena, service)[instance], forMs),
  // Longer than the leases: it wakes, and what it held is another's.
  'freeze an instance past its leases': ({ arena }, { service, instance }) =>
    freeze(pidsOf(arena, service)[instance], 18_000),
  'put the clock of an instance wrong': ({ arena }, { service, instance, skewMs, forMs }) =>
    skewClocks(arena, pidsOf(arena, service).slice(instance, instance + 1), skewMs, 4 * forMs),
  'put the clocks of all services wrong': ({ arena }, { skewMs, forMs }) =>
    skewClocks(
      arena,
      Object.keys(arena.stack.read().services).flatMap((name) => pidsOf(arena, name)),
      skewMs,
      4 * forMs,
    ),

  'kill nats': async ({ arena }) => signal(arena.servers.nats.process.pid(), 'SIGKILL'),
  'freeze nats': ({ arena }, { forMs }) => freeze(arena.servers.nats.process.pid(), forMs),
  'delete the event stream': deleteStreams,
  // What an `immediate` stop is: no checkpoint, and a recovery at the start.
  'restart postgres': async ({ arena }) => signal(arena.servers.postgres.process.pid(), 'SIGQUIT'),
  'end all sessions': ({ arena }) => endSessions(arena.servers.postgres.url),
  'put the clock of postgres wrong': ({ arena: { postgresClock } }, { skewMs, forMs }) =>
    during(
      forMs,
      () => postgresClock?.skew(skewMs),
      () => postgresClock?.skew(0),
    ),
  'make postgres read-only': ({ arena }, { forMs }) => makeReadOnly(arena.servers.postgres.url, forMs),
  'kill redis': async ({ arena }) => signal(arena.servers.redis.process.pid(), 'SIGKILL'),
  'freeze redis': ({ arena }, { forMs }) => freeze(arena.servers.redis.process.pid(), forMs),
  'flush redis': ({ arena }) => firstWords(arena.servers.redis.url, 6379, 'FLUSHALL\r\n').catch(() => {}),

  'reset all connections': async ({ arena }, { server }) => arena.servers[server].proxy.reset(),
  'refuse connections': (ground, aim) => withProxy(ground, aim, (proxy) => proxy.refuse()),
  'swallow everything': (ground, aim) => withProxy(ground, aim, (proxy) => proxy.swallow()),
  'slow a server': (ground, aim) => withProxy(ground, aim, (proxy) => proxy.delay(250)),
  'slow everything': slowEverything,

  'lose packets': ({ arena: { wires } }, { forMs }) => endAfter(forMs, wires?.lose(20)),
  // For longer, at times, than Postgres believes in it.
  'cut a machine off': ({ arena: { wires } }, { instance, forMs }) => endAfter(5 * forMs, wires?.cutMachine(instance)),
  'cut a server off': ({ arena: { wires, servers } }, { server, forMs }) =>
    endAfter(forMs, wires?.cutServer(servers[server].proxy.url)),

  'platform: passing errors': ({ platform }) => platform.layFault(texts, { kind: 'error', code: 131016 }, 6),
  'platform: too fast': ({ platform }) => platform.layFault(texts, { kind: 'error', code: 130429 }, 6),
  'platform: broken answers': ({ platform }) => platform.layFault(texts, { kind: 'error', status: 502 }, 3),
  'platform: resets': ({ platform }) => platform.layFault(texts, { kind: 'reset' }, 3),
  'platform: silence': ({ platform }) => platform.layFault(texts, { kind: 'timeout_before', ms: 4_000 }, 3),
  'platform: silence after the acceptance': ({ platform }) =>
    platform.layFault(texts, { kind: 'timeout_after_accept', ms: 2_000 }, 3),
  'platform: callbacks late, doubled and in disorder': disorderCallbacks,
  'subscriber: errors': ({ subscriber: { trouble } }, { forMs }) =>
    during(
      forMs,
      () => trouble.failing.add('amber-twin'),
      () => trouble.failing.delete('amber-twin'),
    ),
  'subscriber: slow': ({ subscriber: { trouble } }, { forMs }) =>
    during(
      forMs,
      () => (trouble.delayMs = 2_000),
      () => (trouble.delayMs = 0),
    ),
}

export function faultOf(name: string): Fault {
  const fault = faults[name]
  if (!fault) throw new Error(`The nemesis knows no "${name}".`)
  return fault
}

const texts = { type: 'text' }

const pidsOf = ({ stack }: Arena, service: string) =>
  (stack.read().services[service] ?? []).flatMap(({ pid }) => pid ?? [])

/** One that is gone already has died before. */
function signal(pid: number | undefined, name: NodeJS.Signals) {
  try {
    if (pid !== undefined) process.kill(pid, name)
  } catch (err) {
    if (!(err instanceof Error && 'code' in err && err.code === 'ESRCH')) throw err
  }
}

const freeze = (pid: number | undefined, forMs: number) =>
  during(
    forMs,
    () => signal(pid, 'SIGSTOP'),
    () => signal(pid, 'SIGCONT'),
  )

/** Who is started meanwhile has the right time. */
const skewClocks = ({ clocks }: Arena, pids: number[], skewMs: number, forMs: number) =>
  during(
    forMs,
    () => pids.forEach((pid) => clocks.skew(pid, skewMs)),
    () => pids.forEach((pid) => clocks.skew(pid, 0)),
  )

/** What has begun, if anything has: there may be nothing to harm. */
async function endAfter(forMs: number, end: (() => void) | undefined) {
  if (!end) return
  await sleep(forMs)
  end()
}

function withProxy(
  { arena }: Ground,
  { server, forMs }: Aim,
  harm: (proxy: Arena['servers']['nats']['proxy']) => void,
) {
  const { proxy } = arena.servers[server]
  return during(forMs, () => harm(proxy), proxy.heal)
}

async function slowEverything({ arena, platform }: Ground, { forMs }: Aim) {
  const proxies = Object.values(arena.servers).map(({ proxy }) => proxy)
  await platform.layFault(texts, { kind: 'delay', ms: 500 }, 10)
  await during(
    forMs,
    () => proxies.forEach(({ delay }) => delay(100)),
    () => proxies.forEach(({ heal }) => heal()),
  )
}

async function deleteStreams({ arena }: Ground) {
  const { process } = arena.servers.nats
  await process.stop()
  rmSync(arena.streamsFolder, { recursive: true, force: true })
  process.start()
}

function disorderCallbacks({ platform }: Ground, { forMs }: Aim) {
  const disorder = { reorder: true, duplicates: 1, callback_jitter_ms: 1_500 }
  const order = { reorder: false, duplicates: 0, callback_jitter_ms: 0 }
  return during(
    forMs,
    () => platform.set(disorder),
    () => platform.set(order),
  )
}
