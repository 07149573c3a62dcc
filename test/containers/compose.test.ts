import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { serviceNames } from '@app/deploy/stack/options.ts'
import { request } from 'undici'
import { clientOf, type Json } from '../journeys/client.ts'
import type { Stack } from '../journeys/start-stack.ts'
import { until } from '../until.ts'
import { docker } from './docker.ts'
import { Installation, snippetOf } from './installation.ts'

const deploying = 'docs/deploying.md'
const upgrading = 'docs/operations/upgrading.md'
const someoneNew = '+15551234567'

let installation: Installation
let world: { simulator: string; deliveries: string }
let stack: Stack

beforeAll(async () => {
  installation = new Installation()
  await installation.run(snippetOf(deploying, 'docker build'))
  const organization = await installation.run(snippetOf(deploying, 'node deploy/run.mjs deploy/new-secrets.ts'))
  const [, id = ''] = /"id":"(org_\w+)"/.exec(organization) ?? []
  world = await installation.startWorld('messaging-service:local')
  stack = await stackOf(id)
})
afterAll(() => installation.remove())

/** A key and a number of an organization, as a client of the journeys wants to know them. */
async function stackOf(organization: string): Promise<Stack> {
  const { key } = await installation.admin('key', 'create', '--organization', organization, '--label', 'containers')
  const answer = await request(`${world.simulator}/control/numbers`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  })
  const number = (await answer.body.json()) as Json
  await installation.admin(
    'account', 'connect', '--organization', organization, '--phone-number-id', number.phone_number_id,
    '--access-token', number.access_token, '--business-account-id', number.business_account_id,
  ) // prettier-ignore
  return {
    base_url: `${await installation.gatewayUrl()}/v1`,
    api_key: key,
    organization_id: organization,
    phone_number_id: number.phone_number_id,
    demo_contact: { id: '', phone_number: someoneNew },
    simulator_url: world.simulator,
    postgres_url: '',
    nats_url: '',
    services: {},
    servers: {},
  }
}

const allHealthy = () =>
  until(async () => {
    const programs = await installation.programs()
    const states = Object.fromEntries(programs.map(({ Service, Health }) => [Service, Health]))
    expect(states).toMatchObject(Object.fromEntries(serviceNames.map((name) => [name, 'healthy'])))
  }, 90_000)

/** The gateway as it is now, under the port that it has now. */
async function clientNow() {
  await allHealthy()
  stack = { ...stack, base_url: `${await installation.gatewayUrl()}/v1` }
  return clientOf(stack)
}

/** Sends a text and waits until the platform says that it was read. */
async function sendAndRead(text: string): Promise<string> {
  const { api, phone, sendText } = await clientNow()
  const sent = await sendText(text)
  expect(sent.body).toMatchObject({ data: { object: 'message' } })
  const { id } = sent.body.data
  await until(async () => {
    const message = (await api('GET', `/${phone}/messages/${id}`)).body.data
    expect(message).toMatchObject({ status: 'read', content: text })
  })
  return id
}

async function delivered(): Promise<Json[]> {
  const answer = await request(world.deliveries)
  return (await answer.body.json()) as Json[]
}

test(
  'the commands of the page bring up an installation that sends, receives and tells',
  { timeout: 240_000 },
  async () => {
    const { api, phone, inbound } = await clientNow()
    const subscription = await api('POST', '/webhook_subscriptions', {
      body: { url: 'http://subscriber.example:9000/hook', events: ['message.received', 'message.sent'] },
    })
    expect(subscription.body).toMatchObject({ data: { object: 'webhook_subscription' } })
    await inbound(someoneNew, 'Anybody there?')
    await until(async () => {
      const received = (await api('GET', `/${phone}/messages?direction=inbound`)).body.data
      expect(received).toMatchObject([{ content: 'Anybody there?' }])
    })
    const id = await sendAndRead('Yes.')
    await until(async () => {
      const told = (await delivered()).map(({ headers }) => headers['x-svc-event'])
      expect(told).toEqual(expect.arrayContaining(['message.received', 'message.sent']))
    })
    expect((await delivered()).map(({ body }) => body.id)).toContain(`${id}:sent`)
  },
)

test('a file goes in by the gateway and out by messaging, over the volume that both have', async () => {
  const { api, phone } = await clientNow()
  const bytes = Buffer.from('%PDF-1.7\nof a container')
  const form = new FormData()
  form.set('messaging_product', 'chat')
  form.set('file', new Blob([bytes], { type: 'application/pdf' }), 'receipt.pdf')
  const uploaded = await api('POST', `/${phone}/media`, { form })
  expect(uploaded.body).toMatchObject({ data: { object: 'media' } })
  const sent = await api('POST', `/${phone}/messages`, {
    body: { messaging_product: 'chat', to: someoneNew, type: 'document', document: { id: uploaded.body.data.id } },
  })
  expect(sent.body).toMatchObject({ data: { object: 'message' } })
  const { id } = sent.body.data
  await until(async () => {
    expect((await api('GET', `/${phone}/messages/${id}`)).body.data.status).toBe('read')
  })
  const link: string = (await api('GET', `/${phone}/messages/${id}`)).body.data.media_url
  const { pathname, search } = new URL(link)
  const file = await request(`${await installation.gatewayUrl()}${pathname}${search}`)
  const hash = (of: Uint8Array) => createHash('sha256').update(of).digest('hex')
  expect(hash(Buffer.from(await file.body.arrayBuffer()))).toBe(hash(bytes))
})

test('a program may write nowhere but in its folders, is not root, and has no capability', async () => {
  for (const name of serviceNames) {
    const look = `const { readFileSync, writeFileSync } = require('node:fs')
      let error; try { writeFileSync('/app/new', '') } catch ({ code }) { error = code }
      const [, capabilities] = /CapEff:\\s+(\\w+)/.exec(readFileSync('/proc/1/status', 'utf8'))
      console.log(JSON.stringify({ error, capabilities, user: process.getuid() }))`
    const said = await docker('exec', `${installation.project}-${name}-1`, 'node', '-e', look)
    expect(JSON.parse(said), name).toEqual({ error: 'EROFS', capabilities: '0000000000000000', user: 1000 })
  }
})

test('what is inside reaches nothing outside', async () => {
  const ask = `require('node:net').connect({ host: 'world', port: 9001, timeout: 3000 })
    .on('connect', () => { console.log('reached'); process.exit() })
    .on('timeout', () => process.exit()).on('error', () => process.exit())`
  const reaches = (name: string) => docker('exec', `${installation.project}-${name}-1`, 'node', '-e', ask)
  expect(await reaches('directory')).toBe('')
  expect(await reaches('webhooks')).toBe('reached')
})

test('a program that dies is started again', async () => {
  for (const name of serviceNames) {
    const container = `${installation.project}-${name}-1`
    await docker('exec', container, 'node', '-e', `process.kill(1, 'SIGTERM')`)
    await until(
      async () => expect(await docker('inspect', '--format', '{{.RestartCount}}', container)).toBe('1'),
      40_000,
    )
  }
  await sendAndRead('After all of them ended')
})

test(
  'a release is replaced and taken back by the commands of the page, and nothing is lost',
  { timeout: 480_000 },
  async () => {
    const images = ['messaging-service:0.1.0', 'messaging-service:0.2.0']
    onTestFinished(() => void docker('rmi', '--no-prune', ...images).catch(() => {}))
    await docker('tag', 'messaging-service:local', images[0] ?? '')
    const before = await sendAndRead('Before')
    await installation.run(snippetOf(upgrading, 'export IMAGE=messaging-service:0.2.0'))
    await allHealthy()
    expect(await imageOfServices()).toEqual(['messaging-service:0.2.0'])
    const between = await sendAndRead('Between')
    await installation.run(snippetOf(upgrading, 'export IMAGE=messaging-service:0.1.0'))
    await allHealthy()
    expect(await imageOfServices()).toEqual(['messaging-service:0.1.0'])
    const after = await sendAndRead('After')
    const { api, phone } = await clientNow()
    const listed: Json[] = (await api('GET', `/${phone}/messages?limit=100`)).body.data
    expect(listed.map(({ id }) => id)).toEqual(expect.arrayContaining([before, between, after]))
  },
)

async function imageOfServices() {
  const containers = serviceNames.map((name) => `${installation.project}-${name}-1`)
  return [...new Set((await docker('inspect', '--format', '{{.Config.Image}}', ...containers)).split('\n'))]
}

test('everything ends in order, and comes back with what it knew', { timeout: 360_000 }, async () => {
  const id = await sendAndRead('Before the night')
  await installation.compose('stop')
  const codes = (await installation.programs()).map(({ Service, ExitCode }) => [Service, ExitCode])
  const inOrder = [...serviceNames, 'postgres', 'redis', 'nats'].map((name) => [name, 0])
  expect(Object.fromEntries(codes)).toMatchObject(Object.fromEntries(inOrder))
  await installation.compose('up --detach --no-build')
  const { api, phone } = await clientNow()
  expect((await api('GET', `/${phone}/messages/${id}`)).body.data.content).toBe('Before the night')
  await sendAndRead('The next morning')
})
