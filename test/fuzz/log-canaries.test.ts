import { randomBytes } from 'node:crypto'
import { expect, inject, test } from 'vitest'
import { client, newPhone, until } from '../journeys/client.ts'
import { startReceiver } from '../journeys/receiver.ts'
import { newTenant } from '../journeys/tenant.ts'
import { isLogged, secretsIn } from './log-secrets.ts'

const stackDir = inject('stackDir')
const canary = (what: string) => `canary-${what}-${randomBytes(6).toString('hex')}`

test('what people and secrets are does not stand in any log, whether it went well or not', { timeout: 120_000 }, async () => {
  const texts = Object.fromEntries(
    ['body', 'inbound', 'contact', 'email', 'metadata', 'template', 'customer', 'redirect', 'hook', 'query', 'key', 'broken', 'reply'].map(
      (what) => [what, what === 'email' ? `${canary(what)}@example.com` : canary(what)],
    ),
  ) as Record<'body' | 'inbound' | 'contact' | 'email' | 'metadata' | 'template' | 'customer' | 'redirect' | 'hook' | 'query' | 'key' | 'broken' | 'reply', string>
  const tenant = await newTenant('--tier', 'unlimited')
  const phone = await tenant.connect()
  const person = newPhone()
  const receiver = await startReceiver()
  // Refuses, with a text of its own: the attempts fail and are told of.
  receiver.respondWith((response) => response.writeHead(500).end(texts.reply))
  const { control } = client()
  const { call, ok } = { call: tenant.call, ok: (...given: Parameters<typeof tenant.ok>) => tenant.ok(...given) }

  const hook = `${receiver.url}?token=${texts.hook}`
  const subscription = await ok('POST', '/webhook_subscriptions', { url: hook, events: ['message.received', 'message.sent', 'contact.created'] })
  await tenant.openWindow(phone, person)
  const message = { from: person.slice(1), type: 'text', text: { body: texts.inbound } }
  await control('/control/inbound', { phone_number_id: phone, message, contact: { profile: { name: texts.contact } } })
  const send = (text: unknown, to: unknown = person) =>
    call('POST', `/${phone}/messages`, { messaging_product: 'chat', to, type: 'text', text: { body: text } }, { 'idempotency-key': texts.key })
  expect((await send(texts.body)).status).toBe(200)
  await control('/control/faults', { match: { to: person.slice(1) }, fault: { kind: 'error', code: 131026, status: 400 } })
  await call('POST', `/${phone}/messages`, { messaging_product: 'chat', to: person, type: 'text', text: { body: texts.body } })
  for (const [text, to] of [[texts.body, newPhone()], [{ a: texts.body }, person], [`${texts.body}\0`, person], [texts.body, texts.contact]])
    expect((await send(text, to)).status).toBeGreaterThanOrEqual(400)

  const contact = { phone_number: newPhone(), name: texts.contact, email: texts.email, metadata: { [texts.metadata]: texts.metadata } }
  await ok('POST', `/${phone}/contacts`, contact)
  await call('POST', `/${phone}/contacts`, { ...contact, email: texts.contact })
  await call('POST', `/${phone}/contacts`, `{"name":"${texts.broken}"`)
  await call('GET', `/${phone}/contacts?search=${texts.query}&limit=0`)
  await call('GET', `/${phone}/contacts?phone_number=${encodeURIComponent(person)}`)
  const customer = await ok('POST', '/customers', { name: texts.customer, email: texts.email })
  const link = await ok('POST', `/customers/${customer.id}/setup_links`, { success_redirect_url: `https://shop.example/?${texts.redirect}` })
  await fetch(link.setup_url).then((answer) => answer.text())
  await call('POST', `/${phone}/templates`, { name: 'canary', language: 'en_US', category: 'UTILITY', components: [{ type: 'BODY', text: `${texts.template} {{1}}` }] })
  await call('POST', `/${phone}/register`, { pin: '482916' })
  await call('POST', '/labels', { name: texts.customer.slice(0, 40) })
  await call('POST', '/labels', { name: texts.customer.slice(0, 40).toUpperCase() })
  const secret = await ok('POST', `/webhook_subscriptions/${subscription.id}/secrets`, {})
  await client().api('GET', `/me?api_key=${tenant.key}`, { key: null })
  await client().api('GET', '/me', { key: `${tenant.key}x` })
  await until(() => expect(receiver.deliveries.length).toBeGreaterThanOrEqual(4))

  // A refusal is logged by its request's id, and with it whatever came before.
  const last = await call('GET', '/labels?limit=0')
  await until(() => expect(isLogged(stackDir, last.body.error.request_id)).toBe(true))
  receiver.close()
  const given = { ...texts, 'the API key': tenant.key, 'a signing secret': secret.secret, 'the first secret': subscription.initial_secret, 'the link': link.setup_url.split('/').at(-1), 'the phone': person.slice(1) }
  expect(secretsIn(stackDir, given)).toEqual([])
}) // prettier-ignore
