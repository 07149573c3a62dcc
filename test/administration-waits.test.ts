import { answerCommand } from '@app/deploy/administration/answer.ts'
import { type Bus, withBus } from '@app/deploy/stack/bus.ts'
import { explains, type Moment, standing } from '@app/shared/contracts/explain.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startTestNats, type TestNats } from './nats.ts'

let nats: TestNats
beforeAll(async () => {
  nats = await startTestNats()
})
afterAll(() => nats.stop())

const connected = <T>(work: (bus: Bus) => Promise<T>) => withBus({ natsUrl: nats.url }, work)

const answersTo = (nc: Bus['nc'], subject: string, data: unknown) =>
  nc.subscribe(subject, { callback: (_err, question) => question.respond(JSON.stringify({ data })) })

test('a command waits for services that have just been started, and says so', async () => {
  const told = vi.spyOn(console, 'error').mockImplementation(() => {})
  const answer = answerCommand(['organization', 'list'], 'req_1', connected)
  await vi.waitUntil(() => told.mock.calls.length > 0, { timeout: 10_000 })
  expect(told.mock.calls).toEqual([
    ['Nobody answers to rpc.platform.list-organizations yet; asking for half a minute …'],
  ])
  const none = { organizations: [], next_after: null }
  await connected(async ({ nc }) => {
    answersTo(nc, 'rpc.platform.list-organizations', none)
    expect(await answer).toEqual(none)
  })
  expect(told).toHaveBeenCalledTimes(1)
})

test('a service that answers that it has no database is not asked again, and the operator is told where the reason is', async () => {
  const away = new Problem('service_unavailable')
  await connected(async ({ nc }) => {
    const service = await nc.services.add({ name: 'platform', version: '1.0.0' })
    const envelope = Buffer.from(JSON.stringify(away.toEnvelope('req_1')))
    for (const name of ['list-organizations', 'explain-key']) {
      service.addEndpoint(name, {
        subject: `rpc.platform.${name}`,
        handler: (_err, question) => question.respondError(503, away.failure, envelope),
      })
    }
    for (const words of [
      ['organization', 'list'],
      ['explain', newId('key')],
    ])
      await expect(answerCommand(words, 'req_1', connected)).rejects.toThrow(
        'Not available at the moment: the logs of the services say why, where they name req_1.',
      )
  })
})

const organization = newId('org')
const message = newId('msg')
const request = newId('req')
const life = {
  id: message,
  organization_id: organization,
  request_id: request,
  event_ids: [`${message}:sent`],
  history: [standing('is sent')],
}
const delivered = { history: [standing('is succeeded')] }
const asked = { organization_id: organization, at: '2026-01-01T00:00:00.000Z', history: [standing('POST: 200')] }

interface Case {
  away: string
  of: string
  unanswered: string[]
  whats: string[]
}

/** Explains what such an id is of, while somebody is away. */
async function explainWithout({ away, of, ...told }: Case) {
  await connected(async ({ nc }) => {
    const answers = {
      'rpc.messaging.explain-message': life,
      'rpc.messaging.find-requested-messages': { ids: [message] },
      'rpc.webhooks.explain-events': delivered,
      'rpc.platform.explain-request': asked,
      'rpc.platform.explain-recorded-event': { event: null, history: [] },
      'rpc.messaging.explain-recorded-event': { event: null, history: [] },
      'rpc.directory.explain-recorded-event': { event: null, history: [] },
      'rpc.webhooks.explain-recorded-event': { event: null, history: [] },
    }
    for (const [subject, answer] of Object.entries(answers)) if (subject !== away) answersTo(nc, subject, answer)
    if (told.unanswered[0]?.startsWith('no answer')) nc.subscribe(away)
    const { history, unanswered } = (await answerCommand(['explain', of], 'req_1', connected)) as Explained
    expect({ unanswered, whats: history.map(({ what }) => what) }).toEqual(told)
  })
}

test.each([
  {
    away: 'rpc.platform.explain-request',
    of: request,
    unanswered: ['nobody serves rpc.platform.explain-request'],
    whats: ['is sent', 'is succeeded'],
  },
  {
    away: 'rpc.messaging.explain-message',
    of: message,
    unanswered: ['nobody serves rpc.messaging.explain-message'],
    whats: ['is succeeded'],
  },
  {
    away: 'rpc.directory.explain-recorded-event',
    of: newId('evt'),
    unanswered: ['nobody serves rpc.directory.explain-recorded-event'],
    whats: ['is succeeded'],
  },
])('without $away, explain tells what the others know and who did not answer', explainWithout)

describe.concurrent('for an answer that does not come it is waited:', () => {
  test('a command that gets no answer says from where', async () => {
    await connected(async ({ nc }) => {
      nc.subscribe('rpc.platform.explain-key')
      const answer = answerCommand(['explain', newId('key')], 'req_1', connected)
      await expect(answer).rejects.toThrow('Not available at the moment: no answer from rpc.platform.explain-key.')
    })
  })

  test('without rpc.webhooks.explain-events, explain tells what the others know and who did not answer', () =>
    explainWithout({
      away: 'rpc.webhooks.explain-events',
      of: message,
      unanswered: ['no answer from rpc.webhooks.explain-events'],
      whats: ['POST: 200', 'is sent'],
    }))
})

interface Explained {
  history: Moment[]
  unanswered?: string[]
}

test('what is not found is not called unknown while somebody did not answer', async () => {
  await connected(async ({ nc }) => {
    answersTo(nc, 'rpc.webhooks.explain-events', { history: [] })
    const answer = answerCommand(['explain', newId('msg')], 'req_1', connected)
    await expect(answer).rejects.toThrow('Not available at the moment: nobody serves rpc.messaging.explain-message.')
  })
})

test('an idempotency key is looked for at all services, since each may have a database of its own', async () => {
  const told = async () => {
    const words = ['explain', '--organization', organization, '--key', 'order-17']
    return ((await answerCommand(words, 'req_1', connected)) as Explained).history.map(({ what }) => what)
  }
  let whereItIs = ''
  await connected(async ({ nc }) => {
    const services = await nc.services.add({ name: 'services', version: '1.0.0' })
    const unknown = new Problem('resource_not_found')
    const envelope = Buffer.from(JSON.stringify(unknown.toEnvelope('req_1')))
    for (const [name, { explainIdempotencyKey }] of Object.entries(explains)) {
      const { subject } = explainIdempotencyKey
      const known = { request_id: null, history: [standing(`was answered by ${name}`)] }
      services.addEndpoint(name, {
        subject,
        handler: (_err, question) => {
          if (name === whereItIs) question.respond(JSON.stringify({ data: known }))
          else question.respondError(unknown.status, unknown.failure, envelope)
        },
      })
    }
    await expect(told()).rejects.toThrow('Nothing is known of "order-17".')
    for (whereItIs of Object.keys(explains)) expect(await told()).toEqual([`was answered by ${whereItIs}`])
  })
})
