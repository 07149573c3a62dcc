import { readFileSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { type Bus, connectBus } from '@app/shared/bus/bus.ts'
import { createLog } from '@app/shared/service/log.ts'
import { consumers, provision, restoreConsumer, restoreStream } from '@app/shared/events/provision.ts'
import { streamName } from '@app/shared/events/stream.ts'
import { headers } from 'nats'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { provisionAt } from '../provision.ts'
import { type Servers, startServers } from '../servers/start-servers.ts'
import { repository, serviceNames } from '../stack/options.ts'
import { authorizationOf, keyVariableOf } from './authorization.ts'
import { newSeed, publicKeyOf } from './keys.ts'
import { asks, hears, type NatsUser, natsUsers, permissionsOf } from './permissions.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'permissions-'))
const seeds = new Map(natsUsers.map((user) => [user, newSeed()]))
const seedOf = (user: NatsUser) => seeds.get(user) ?? ''
const dataServices = serviceNames.filter((name) => name !== 'gateway')
let servers: Servers
let buses: Record<NatsUser, Bus>

beforeAll(async () => {
  const natsAuthorization = authorizationOf((user) => publicKeyOf(seedOf(user)))
  servers = await startServers({ dataDir, log: () => {}, only: ['nats'], natsAuthorization })
  await provisionAt({ natsUrl: servers.natsUrl, natsSeed: seedOf('deploy') })
  const connected = await Promise.all(natsUsers.map(async (user) => [user, await busOf(user, seedOf(user))] as const))
  buses = Object.fromEntries(connected) as Record<NatsUser, Bus>
  for (const user of natsUsers) void listenForRefusals(user, buses[user])
}, 60_000)

afterAll(async () => {
  await Promise.all(Object.values(buses).map(({ nc }) => nc.close()))
  await servers.stop()
  rmSync(dataDir, { recursive: true })
})

const busOf = (user: string, nkeySeed: string | undefined) =>
  connectBus(user, servers.natsUrl, createLog(user, 'silent'), { nkeySeed })

/** By user: what the server refused. It says so before it answers the flush that follows. */
const refusals = new Map<NatsUser, string[]>()

async function listenForRefusals(user: NatsUser, { nc }: Bus) {
  const refused: string[] = []
  refusals.set(user, refused)
  for await (const { permissionContext } of nc.status()) {
    if (permissionContext) refused.push(`${permissionContext.operation} ${permissionContext.subject}`)
  }
}

async function mayPublish(user: NatsUser, subject: string) {
  const { nc } = buses[user]
  nc.publish(subject, '{}')
  await nc.flush()
  await setImmediate()
  return !refusals.get(user)?.includes(`publish ${subject}`)
}

async function maySubscribe(user: NatsUser, subject: string) {
  const { nc } = buses[user]
  nc.subscribe(subject, { callback: () => {} })
  await nc.flush()
  await setImmediate()
  return !refusals.get(user)?.includes(`subscription ${subject}`)
}

test('nobody enters without a key', async () => {
  const { natsUrl } = servers
  await expect(provisionAt({ natsUrl })).rejects.toThrow('does not know us')
  await expect(provisionAt({ natsUrl, natsSeed: newSeed() })).rejects.toThrow('does not know us')
})

describe.each(serviceNames)('%s', (service) => {
  const others = serviceNames.filter((name) => name !== service)

  test.each([...others, 'deploy'])('does not read the inbox of %s', async (other) => {
    expect(await maySubscribe(service, `_INBOX_${other}.>`)).toBe(false)
  })

  test.each(['>', '_INBOX.>', '_INBOX_*.>', 'event.>', '$JS.>', '$SYS.>'])('does not hear %s', async (subject) => {
    expect(await maySubscribe(service, subject)).toBe(false)
  })

  test.each(others)('does not serve or hear the questions to %s', async (other) => {
    expect(await maySubscribe(service, `rpc.${other}.*`)).toBe(false)
    expect(await maySubscribe(service, `rpc.${other}.list-accounts`)).toBe(false)
  })

  test('hears the notices that it should, and tells none but its own', async () => {
    const heard = hears[service].map(({ subject }) => subject)
    for (const subject of Object.values(hears).flatMap((some) => some.map((one) => one.subject))) {
      expect([subject, await maySubscribe(service, subject)]).toEqual([subject, heard.includes(subject)])
      expect([subject, await mayPublish(service, subject)]).toEqual([subject, subject.split('.')[1] === service])
    }
    expect(await maySubscribe(service, 'notice.>')).toBe(false)
  })

  test.each(others)('does not tell the events of %s', async (other) => {
    expect(await mayPublish(service, `event.${other}.account-changed`)).toBe(false)
  })

  test.each([
    ['delete', `$JS.API.STREAM.DELETE.${streamName}`],
    ['empty', `$JS.API.STREAM.PURGE.${streamName}`],
    ['change', `$JS.API.STREAM.UPDATE.${streamName}`],
    ['read from', `$JS.API.STREAM.MSG.GET.${streamName}`],
    ['read from', `$JS.API.DIRECT.GET.${streamName}`],
    ['delete from', `$JS.API.STREAM.MSG.DELETE.${streamName}`],
    ['restore', `$JS.API.STREAM.RESTORE.${streamName}`],
    ['copy', `$JS.API.STREAM.CREATE.COPY`],
    ['snapshot', `$JS.API.STREAM.SNAPSHOT.${streamName}`],
    ['make a consumer of its own on', `$JS.API.CONSUMER.CREATE.${streamName}.mine.event.>`],
    ['make a nameless consumer on', `$JS.API.CONSUMER.CREATE.${streamName}`],
  ])('does not %s the stream (%s)', async (_what, subject) => {
    expect(await mayPublish(service, subject)).toBe(false)
  })

  test.each(Object.values(consumers).filter(({ name }) => !name.startsWith(service)))(
    'does not touch the consumer $name',
    async ({ name, subject }) => {
      expect(await mayPublish(service, `$JS.API.CONSUMER.MSG.NEXT.${streamName}.${name}`)).toBe(false)
      expect(await mayPublish(service, `$JS.API.CONSUMER.CREATE.${streamName}.${name}.${subject}`)).toBe(false)
      expect(await mayPublish(service, `$JS.API.CONSUMER.DELETE.${streamName}.${name}`)).toBe(false)
      expect(await mayPublish(service, `$JS.ACK.${streamName}.${name}.1.1.1.1.0`)).toBe(false)
    },
  )

  test('asks others what it needs, and nothing else', async () => {
    const subjects = [...new Set(others.flatMap((other) => asks[other].map(({ subject }) => subject)))]
    const needed = new Set(asks[service].map(({ subject }) => subject))
    for (const subject of subjects)
      expect([subject, await mayPublish(service, subject)]).toEqual([subject, needed.has(subject)])
    expect(await mayPublish(service, 'rpc.platform.create-key')).toBe(false)
  })
})

test.each(dataServices)('%s makes the stream and its consumers anew when they are lost', async (service) => {
  const { nc } = buses[service]
  const operator = await buses.deploy.nc.jetstreamManager()
  await operator.streams.delete(streamName)
  const { created } = await restoreStream(nc, 1)
  for (const { name } of ownConsumers(service)) {
    await restoreConsumer(nc, name, 1)
    expect((await operator.consumers.info(streamName, name)).config.durable_name).toBe(name)
  }
  expect((await restoreStream(nc, 1)).created).toBe(created)
  await provision(buses.deploy.nc)
})

const ownConsumers = (service: string) => Object.values(consumers).filter(({ name }) => name.startsWith(`${service}-`))

test.each(dataServices)(
  '%s sees what the consumers have handled, before it publishes into a full stream',
  async (service) => {
    const jsm = await buses[service].nc.jetstreamManager({ checkAPI: false })
    const names = (await jsm.consumers.list(streamName).next()).map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(Object.values(consumers).map(({ name }) => name)))
  },
)

test.each(dataServices)('%s hears and acknowledges its events, and tells its own', async (service) => {
  const { nc, request } = buses[service]
  for (const { name } of ownConsumers(service)) {
    const consumer = await nc.jetstream().consumers.get(streamName, name)
    await buses.deploy.nc.jetstream().publish(subjectFor(name), '{}')
    const message = await consumer.next({ expires: 2_000 })
    expect(await message?.ackAck()).toBe(true)
  }
  const answer = await request(`event.${service}.told`, Buffer.from('{}'), headers(), 2_000)
  expect(JSON.parse(answer.string())).toMatchObject({ stream: streamName })
})

const subjectFor = (consumer: string) =>
  (Object.values(consumers).find(({ name }) => name === consumer)?.subject ?? '')
    .replace('>', 'any.thing')
    .replace('platform.any.thing', 'platform.any')

// The stream answers a pull at whatever address it is told, so its reply could be led to where its asker may not write.
test('an event cannot be led into a deletion of the stream', async () => {
  const { nc } = buses.webhooks
  await nc.jetstream().publish('event.webhooks.told', '{}')
  nc.publish(`$JS.API.CONSUMER.MSG.NEXT.${streamName}.webhooks-fan-out`, '{"batch":10,"no_wait":true}', {
    reply: `$JS.API.STREAM.DELETE.${streamName}`,
  })
  await nc.flush()
  const operator = await buses.deploy.nc.jetstreamManager()
  expect((await operator.streams.info(streamName)).config.name).toBe(streamName)
})

test('every question in a service’s code is one that it may ask', () => {
  for (const service of serviceNames) {
    const files = globSync(`services/${service}/**/*.ts`, {
      cwd: repository,
      exclude: ['**/testing/**', '**/*.test.ts', '**/node_modules/**'],
    })
    const asked = files.flatMap((file) => {
      const code = readFileSync(join(repository, file), 'utf8')
      return [...code.matchAll(/\b(?:call|ask)\(\s*\w+,\s*([a-z]\w+),/g)].flatMap(([, name = '']) =>
        new RegExp(`import \\{[^}]*\\b${name}\\b[^}]*\\} from '@app/shared/contracts/`).test(code) ? [kebab(name)] : [],
      )
    })
    const allowed = permissionsOf(service).publish.flatMap(
      // The latter by what publishes the events of each (shared/events/audit.ts).
      (subject) => /^rpc\.\w+\.(?!in-work$|handled-ranges$)(.+)$/.exec(subject)?.[1] ?? [],
    )
    expect(asked.length, service).toBeGreaterThan(0)
    expect(allowed, service).toEqual(expect.arrayContaining(asked))
    if (service !== 'gateway') expect([...new Set(asked)].toSorted(), service).toEqual(allowed.toSorted())
  }
})

test('every notice that a service’s code hears is one that it may hear', () => {
  for (const service of serviceNames) {
    const files = globSync(`services/${service}/**/*.ts`, {
      cwd: repository,
      exclude: ['**/testing/**', '**/*.test.ts', '**/node_modules/**'],
    })
    const heard = files.flatMap((file) => {
      const code = readFileSync(join(repository, file), 'utf8')
      return [...code.matchAll(/\bhear\(\w+, (\w+),/g)].map(([, name = '']) => kebab(name))
    })
    expect(heard, service).toEqual(hears[service].map(({ subject }) => subject.split('.')[2]))
  }
})

const kebab = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

test('users.conf says the same', async () => {
  const header =
    '# Made from permissions.ts: `npm test -- deploy/nats -u` writes it. The public key of each user comes from the environment.\n'
  const text = header + authorizationOf((user) => `$${keyVariableOf(user)}`)
  await expect(text).toMatchFileSnapshot('users.conf')
})
