import { answerCommand } from '@app/deploy/administration/answer.ts'
import { type Bus, withBus } from '@app/deploy/stack/bus.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestNats, type TestNats } from './nats.ts'

let nats: TestNats
beforeAll(async () => {
  nats = await startTestNats()
})
afterAll(() => nats.stop())

const connected = <T>(work: (bus: Bus) => Promise<T>) => withBus({ natsUrl: nats.url }, work)
const answerOf = (line: string) => answerCommand(line.split(' '), 'req_1', connected)

test('events are published again by every service that records some, and each says how many', async () => {
  await connected(async ({ nc }) => {
    const services = ['platform', 'messaging', 'directory', 'webhooks']
    for (const [events, name] of services.entries())
      nc.subscribe(`rpc.${name}.redrive-events`, {
        callback: (_err, question) => question.respond(JSON.stringify({ data: { events } })),
      })
    await nc.flush()
    const data = services.map((_, events) => ({ events }))
    expect(await answerOf('events redrive --since 2026-01-31T00:00:00Z')).toEqual({ data })
  })
})

test.each([
  ['features', 'features must be known.', '--features must be known.'],
  ['features[1]', 'features[1] must be known.', '--features must be known.'],
  ['name', 'An organization has this name: org_1.', 'An organization has this name: org_1.'],
])('what a service says of the field %s is said of the option that was typed', async (param, message, said) => {
  const refusal = new Problem('invalid_field_value', { param, message })
  const envelope = Buffer.from(JSON.stringify(refusal.toEnvelope('req_1')))
  await connected(async ({ nc }) => {
    const service = await nc.services.add({ name: 'platform', version: '1.0.0' })
    service.addEndpoint('create', {
      subject: 'rpc.platform.create-organization',
      handler: (_err, question) => question.respondError(refusal.status, refusal.failure, envelope),
    })
    await nc.flush()
    await expect(answerOf('organization create --name Acme --features messaging,x')).rejects.toThrow(said)
  })
})
