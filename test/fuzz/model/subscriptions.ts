import fc from 'fast-check'
import { expect } from 'vitest'
import { until } from '../../journeys/client.ts'
import { command, type Command, expectAnswer, inOrder, type Model, type Real, toldBy } from './model.ts'

export const subscriptionCommands: fc.Arbitrary<Command>[] = [
  fc.constantFrom('active', 'paused').map((status) =>
    command(`make the subscription ${status}`, (model, real) => setStatus(model, real, status)),
  ),
  fc.option(fc.constant(24)).map((hours) => command(`add a secret for ${hours} h`, (model, real) => addSecret(model, real, hours))),
  fc.nat().map((n) => command(`replay delivery ${n}`, (model, real) => replay(model, real, n))),
  fc.nat().map((n) => command(`revoke secret ${n}`, (model, real) => revokeSecret(model, real, n))),
] // prettier-ignore

const pathOf = ({ subscriptionId }: Real) => `/webhook_subscriptions/${subscriptionId}`

async function setStatus(model: Model, real: Real, status: string) {
  const answer = await real.tenant.call('PATCH', pathOf(real), { status })
  expect(answer).toMatchObject({ status: 200, body: { data: { status } } })
  model.isPaused = status === 'paused'
}

const maxSecrets = 5

async function addSecret(model: Model, real: Real, hours: number | null) {
  const body = hours === null ? {} : { expires_in_hours: hours }
  const answer = await real.tenant.call('POST', `${pathOf(real)}/secrets`, body)
  if (model.secrets.length === maxSecrets) return expectAnswer(answer, 409, 'too_many_secrets')
  expect(answer.status).toBe(201)
  const { id, secret } = answer.body.data
  model.secrets.push({ id, isLasting: hours === null })
  model.allSecrets.push(secret)
}

async function revokeSecret(model: Model, real: Real, n: number) {
  const secret = model.secrets[n % model.secrets.length] as Model['secrets'][number]
  const path = `${pathOf(real)}/secrets/${secret.id}`
  const answer = await real.tenant.call('DELETE', path)
  const others = model.secrets.filter((one) => one !== secret)
  if (!others.some(({ isLasting }) => isLasting)) return expectAnswer(answer, 409, 'last_secret')
  expectAnswer(answer, 200, { id: secret.id, object: 'webhook_signing_secret', deleted: true })
  expectAnswer(await real.tenant.call('DELETE', path), 404, 'resource_not_found')
  model.secrets = others
  const { body } = await real.tenant.call('GET', pathOf(real))
  const shown = inOrder(body.data.secrets.map(({ id }: { id: string }) => id))
  expect(shown).toEqual(inOrder(others.map(({ id }) => id)))
}

/** Of what has arrived: it arrives once more, as the same event. */
async function replay(model: Model, { tenant, receiver, subscriptionId }: Real, n: number) {
  const { deliveries } = receiver
  const delivery = deliveries[n % Math.max(1, deliveries.length)]
  if (!delivery) return
  const id = delivery.headers['x-svc-delivery-id'] ?? ''
  await until(async () => {
    expect(await tenant.ok('GET', `/webhook_deliveries/${id}`)).toMatchObject({ status: 'succeeded', attempt_count: 1 })
  })
  const answer = await tenant.call('POST', `/webhook_deliveries/${id}/replay`)
  const made = { object: 'webhook_delivery', subscription_id: subscriptionId, status: 'pending', replayed_from: id }
  expect(answer).toMatchObject({ status: 202, body: { data: made } })
  model.events.push(toldBy(delivery))
}
