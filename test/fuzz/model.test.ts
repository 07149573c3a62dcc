import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { client, type Json, newPhone, until } from '../journeys/client.ts'
import { everyPage } from '../journeys/organization.ts'
import { type Receiver, startReceiver } from '../journeys/receiver.ts'
import { newTenant } from '../journeys/tenant.ts'
import { contactCommands } from './model/contacts.ts'
import { conversationCommands } from './model/conversations.ts'
import { customerCommands } from './model/customers.ts'
import { labelCommands } from './model/labels.ts'
import { inOrder, type Model, type Real, toldBy } from './model/model.ts'
import { subscriptionCommands } from './model/subscriptions.ts'
import { amount, seed } from './seed.ts'

const runs = amount(3, 40)
const steps = amount(60, 150)

const events = [
  'message.received', 'message.status', 'message.sent', 'conversation.assigned', 'conversation.closed', 'contact.created',
  'contact.updated', 'contact.identity_updated', 'customer.created', 'customer.updated', 'customer.archived',
  'customer.setup_link.created',
] // prettier-ignore

/** An organization without anything, and what we believe of it. */
async function begin(receiver: Receiver): Promise<{ model: Model; real: Real }> {
  const tenant = await newTenant('--tier', 'unlimited')
  const phone = await tenant.connect()
  const subscription = await tenant.ok('POST', '/webhook_subscriptions', { url: receiver.url, events })
  const { control } = client()
  const inbound = async (from: string, text: string, name: string): Promise<string> => {
    const message = { from: from.replace('+', ''), type: 'text', text: { body: text } }
    const { id } = await control('/control/inbound', {
      phone_number_id: phone,
      message,
      contact: { profile: { name } },
    })
    return id
  }
  return {
    model: {
      people: Array.from({ length: 4 }, () => ({ phone: newPhone(), contact: null, labelIds: new Set(), deletedAt: 0, conversation: null })),
      labels: [null, null, null],
      customers: [0, 1].map(() => ({ shown: null, links: [] })),
      events: [],
      isPaused: false,
      secrets: subscription.secrets.map(({ id }: Json) => ({ id, isLasting: true })),
      allSecrets: [subscription.initial_secret],
    },
    real: { tenant, phone, subscriptionId: subscription.id, receiver, inbound },
  } // prettier-ignore
}

/** Everything that happened was told, once, signed; and the list of deliveries says the same. */
async function end({ events: expected, allSecrets, isPaused }: Model, { tenant, subscriptionId, receiver }: Real) {
  if (isPaused) await tenant.ok('PATCH', `/webhook_subscriptions/${subscriptionId}`, { status: 'active' })
  await until(() => expect(receiver.deliveries.length).toBeGreaterThanOrEqual(expected.length), 30_000).catch(() => {})
  expect(inOrder(receiver.deliveries.map(toldBy))).toEqual(inOrder(expected))
  for (const { headers, raw } of receiver.deliveries) {
    const [time = '', ...given] = (headers['x-svc-signature'] ?? '').split(',').map((part) => part.split('=')[1] ?? '')
    const signatures = allSecrets.map((secret) => createHmac('sha256', secret).update(`${time}.${raw}`).digest('hex'))
    expect(signatures).toEqual(expect.arrayContaining(given))
    expect(given.length).toBeGreaterThan(0)
  }
  await until(async () => {
    const listed = await everyPage('/webhook_deliveries', 100, tenant.key)
    expect(inOrder(listed.map(({ event_id }) => event_id))).toEqual(
      inOrder(receiver.deliveries.map(({ headers }) => headers['x-svc-event-id'] ?? '')),
    )
    expect(new Set(listed.map(({ status }) => status))).toEqual(new Set(listed.length > 0 ? ['succeeded'] : []))
  })
}

test(`${runs} histories of up to ${steps} steps: every answer is foretold, every change is told once`, { timeout: 3_600_000 }, async () => {
  const commands = fc.commands(
    [...contactCommands, ...labelCommands, ...conversationCommands, ...customerCommands, ...subscriptionCommands],
    { maxCommands: steps, size: 'max' },
  )
  const history = fc.asyncProperty(commands, async (all) => {
    const receiver = await startReceiver()
    try {
      const { model, real } = await begin(receiver)
      await fc.asyncModelRun(() => ({ model, real }), all)
      await end(model, real)
    } finally {
      receiver.close()
    }
  })
  await fc.assert(history, { seed, numRuns: runs, endOnFailure: true })
}) // prettier-ignore
