import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { request } from 'undici'
import { expect, vi } from 'vitest'
import { dumpDatabase } from '../../database-dump.ts'
import { isLogged, secretsIn } from '../../fuzz/log-secrets.ts'
import { adminOf } from '../admin.ts'
import { clientOf, type Json, until } from '../client.ts'
import type { StartedStack } from '../start-stack.ts'
import type { Overheard } from './overheard.ts'

/** How a secret may be written down: as it is, or as its bytes. */
const formsOf = (secret: string) => [
  secret,
  Buffer.from(secret).toString('hex'),
  Buffer.from(secret).toString('base64').replace(/=+$/, ''),
]

/** A PIN is so short that it could stand in a longer number by chance. */
const holds = (text: string, secret: string) =>
  secret.length > 6
    ? formsOf(secret).some((form) => text.includes(form))
    : new RegExp(`(?<![\\w.])${secret}(?![\\w])`).test(text)

async function ok(answer: Promise<{ status: number; body: Json }>): Promise<Json> {
  const { status, body } = await answer
  expect(status, JSON.stringify(body)).toBeLessThan(300)
  return body.data
}

/** Walks through the setup page as its script does; answers what it was told and what it told. */
async function walkThroughSetup(stack: StartedStack, setupUrl: string, linkId: string) {
  const { origin } = new URL(setupUrl)
  const opened = await request(setupUrl)
  await opened.body.dump()
  const cookie = String(opened.headers['set-cookie']).split(';')[0] ?? ''
  await (await request(`${origin}/setup`, { headers: { cookie } })).body.dump()
  const post = async (path: string, body: object): Promise<Json> => {
    const headers = { cookie, origin, 'content-type': 'application/json' }
    const answer = await request(`${origin}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    const json: Json = await answer.body.json()
    expect(answer.statusCode, JSON.stringify(json)).toBe(200)
    return json.data
  }
  const { state } = await post('/setup/begin', { setup_link_id: linkId })
  const finish = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"choice":"number"}',
  } as const
  const dialog: Json = await (await request(`${stack.read().simulator_url}/signup/finish`, finish)).body.json()
  const { waba_id: businessAccountId, phone_number_id: phone } = dialog.data
  await post('/setup/complete', {
    state,
    code: dialog.code,
    event: 'number',
    business_account_id: businessAccountId,
    phone_number_id: phone,
  })
  return { state: state as string, code: dialog.code as string, phone: phone as string }
}

async function upload(stack: StartedStack, phone: string, key: string, bytes: Buffer<ArrayBuffer>) {
  const form = new FormData()
  form.set('messaging_product', 'chat')
  form.set('file', new Blob([bytes], { type: 'application/pdf' }), 'a.pdf')
  const { api } = clientOf(stack.read())
  const { status } = await api('POST', `/${phone}/media`, { key, form, headers: { 'idempotency-key': 'upload' } })
  expect(status).toBe(201)
}

/** What is nobody's secret, and nobody's to find in a log, a trace or Redis either. */
const person = '+15550108888'
const words = { written: 'canary-in-a-message', answered: 'canary-in-an-answer', name: 'canary-of-a-name' }
const personal = { ...words, 'a phone number': person.slice(1) }

/** Does with every kind of secret what can be done; answers the secrets. */
async function live({ stack, receiver }: Overheard): Promise<Record<string, string>> {
  const { api, control } = clientOf(stack.read())
  const admin = adminOf(stack.dataDir)
  const { id: organization } = await admin('organization', 'create', '--name', 'Canaries')
  const { id: keyId, key } = await admin('key', 'create', '--organization', organization, '--label', 'canary')
  const post = (path: string, body: object, once = randomBytes(6).toString('hex')) =>
    ok(api('POST', path, { key, body, headers: { 'idempotency-key': once } }))
  const number = await control('/control/numbers', {})
  const ids = ['--phone-number-id', number.phone_number_id, '--business-account-id', number.business_account_id]
  await admin('account', 'connect', '--organization', organization, '--access-token', number.access_token, ...ids)

  const body = { url: receiver.url, events: ['message.sent', 'message.received'] }
  const subscription = await post('/webhook_subscriptions', body, 'the same')
  expect((await post('/webhook_subscriptions', body, 'the same')).initial_secret).toBe(subscription.initial_secret)
  const another = await post(`/webhook_subscriptions/${subscription.id}/secrets`, {})
  const customer = await post('/customers', { name: words.name })
  const link = await post(`/customers/${customer.id}/setup_links`, {})
  const { state, code, phone } = await walkThroughSetup(stack, link.setup_url, link.id)
  const pin = '739154'
  await post(`/${phone}/register`, { pin })

  const message = { from: person.slice(1), type: 'text', text: { body: words.written } }
  await control('/control/inbound', { phone_number_id: phone, message })
  await until(() => expect(receiver.of('message.received')).toHaveLength(1))
  await post(`/${phone}/messages`, {
    messaging_product: 'chat',
    to: person,
    type: 'text',
    text: { body: words.answered },
  })
  await until(() => expect(receiver.of('message.sent')).toHaveLength(1))
  const file = `canary-in-a-file-${randomBytes(12).toString('hex')}`
  await upload(stack, phone, key, Buffer.from(`%PDF-1.7\n${file}`))

  await api('GET', '/me', { key: `${key.slice(0, -1)}_` })
  await api('GET', `/me?api_key=${key}`, { key: null })
  await admin('key', 'revoke', keyId)
  const last = await api('GET', '/me', { key })
  expect(last.status).toBe(401)
  await until(() => expect(isLogged(stack.dataDir, last.body.error.request_id)).toBe(true))

  const told = { key, state, code, pin, file, subscription, another, link }
  return {
    ...secretsOf(told),
    ...configured(stack),
    "a customer's token": tokenOf(stack, phone),
    'an access token': number.access_token,
  }
}

const secretsOf = ({ key, state, code, pin, file, subscription, another, link }: Record<string, Json>) => ({
  'an API key': key,
  'the hash of an API key': createHash('sha256').update(key).digest('hex'),
  'the first signing secret': subscription.initial_secret,
  'another signing secret': another.secret,
  'a setup token': link.setup_url.split('/').at(-1),
  'the state of a dialog': state,
  'the code of a dialog': code,
  'a PIN': pin,
  'the bytes of a file': file,
})

/** What the programs are given, but for the ids in it. */
function configured(stack: StartedStack): Record<string, string> {
  const all = JSON.parse(readFileSync(join(stack.dataDir, 'secrets.json'), 'utf8')) as Record<string, string>
  const { upstreamAppId: _, ...secrets } = all
  return Object.fromEntries(Object.entries(secrets).map(([name, text]) => [name, text.replace(/^k1:/, '')]))
}

/** What the platform sold for the code of a dialog. */
function tokenOf(stack: StartedStack, phone: string): string {
  const { numbers } = JSON.parse(readFileSync(join(stack.dataDir, 'simulator.json'), 'utf8')) as Json
  return numbers.find((one: Json) => one.phoneNumberId === phone).accessToken
}

const classOf = (subject: string) => subject.replace(/^(_INBOX_\w+)\..*/, '$1')

/** Where each secret stands, by the places' names. */
function whereIs(secrets: Record<string, string>, places: { name: string; text: string }[]) {
  const found = Object.entries(secrets).map(([what, secret]) => {
    const names = places.filter(({ text }) => holds(text, secret)).map(({ name }) => name)
    return [what, [...new Set(names)].toSorted()] as const
  })
  return Object.fromEntries(found.filter(([, names]) => names.length > 0))
}

/** No secret stands in the database, in the event stream, in Redis, in a log or a trace; on the bus each goes only where it is needed. */
export async function secretsStay(own: Overheard) {
  const { stack, collector, postgresUrl } = own
  const secrets = await live(own)
  const { heard, stored } = await own.bus()
  expect(Object.values(secrets).filter((secret) => typeof secret !== 'string' || secret.length < 6)).toEqual([])

  const rows = (await dumpDatabase(postgresUrl)).map(({ table, text }) => ({ name: table, text }))
  // A key is found again by its hash, and by nothing else.
  expect(whereIs(secrets, rows)).toEqual({ 'the hash of an API key': ['platform.api_keys'] })
  expect(
    whereIs(
      secrets,
      stored.map(({ subject, text }) => ({ name: subject, text })),
    ),
  ).toEqual({})
  expect(own.redis()).toContain('evalsha')
  const unsaid = { ...secrets, ...personal }
  expect(whereIs(unsaid, [{ name: 'redis', text: own.redis() }])).toEqual({})
  await vi.waitFor(() => expect(collector.text()).toContain('rpc.messaging.send-message'), {
    timeout: 20_000,
    interval: 100,
  })
  expect(whereIs(unsaid, [{ name: 'traces', text: collector.text() }])).toEqual({})
  expect(secretsIn(stack.dataDir, unsaid)).toEqual([])
  expect(Object.keys(whereIs(personal, rows))).toEqual(Object.keys(personal))

  // docs/decisions/0008: what passes over the bus in the clear, from whom it has to whom it is for.
  expect(
    whereIs(
      secrets,
      heard.map(({ subject, text }) => ({ name: classOf(subject), text })),
    ),
  ).toEqual({
    'an API key': ['_INBOX_deploy'],
    'the hash of an API key': ['rpc.platform.authenticate-key'],
    'the first signing secret': ['_INBOX_gateway'],
    'another signing secret': ['_INBOX_gateway'],
    'a setup token': [
      '_INBOX_gateway',
      'rpc.platform.begin-setup',
      'rpc.platform.complete-setup',
      'rpc.platform.get-setup',
    ],
    'the state of a dialog': ['_INBOX_gateway', 'rpc.platform.complete-setup'],
    'the code of a dialog': ['rpc.platform.complete-setup'],
    'a PIN': ['rpc.platform.register-number'],
    'an access token': ['rpc.platform.connect-account'],
  })
}
