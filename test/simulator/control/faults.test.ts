import { expect, test } from 'vitest'
import { until } from '../../until.ts'
import { startTrial, type Trial } from '../trial.ts'

const template = { type: 'template', template: { name: 'order_ok', language: { code: 'en_US' } } }

const lay = ({ control }: Trial, fault: object, match: object = {}, times?: number) =>
  control('POST', 'faults', { match, fault, times })

const sentBy = async ({ control }: Trial) => (await control<{ data: Array<{ id: string }> }>('GET', 'sent')).body.data

test('answers an error of the platform, as often as said, and then is gone', async () => {
  const trial = await startTrial()
  await lay(trial, { kind: 'error', code: 131016 }, {}, 2)
  await lay(trial, { kind: 'error', code: 131049, status: 429 })
  const answers = []
  for (let count = 0; count < 4; count++) answers.push(await trial.send(trial.number, template))
  expect(answers.map(({ status, body }) => [status, body.error?.code])).toEqual([
    [500, 131016],
    [500, 131016],
    [429, 131049],
    [200, undefined],
  ])
  expect(answers[0]?.body.error?.message).toBe('(#131016) Service unavailable')
  expect(await sentBy(trial)).toHaveLength(1)
})

test('answers a bare status in no shape of the platform', async () => {
  const trial = await startTrial()
  await lay(trial, { kind: 'error', status: 502 })
  const answer = await trial.send(trial.number, template)
  expect(answer).toMatchObject({ status: 502, body: expect.stringContaining('<html>') })
})

test('meets only what it matches: digits of the recipient, type, path', async () => {
  const trial = await startTrial({ settings: { enforce_window: false } })
  const { send, graph, receive, number } = trial
  const fault = { kind: 'error', code: 1 }
  const text = { type: undefined, text: { body: 'hi' } }
  await lay(trial, fault, { to: '+1 650 555 9999' })
  await lay(trial, fault, { type: 'text' })
  await lay(trial, fault, { type: 'read' })
  await lay(trial, fault, { to: 'US.1349' })
  await lay(trial, fault, { path: `${number.phone_number_id}?fields` })

  expect(await send(number, template)).toMatchObject({ status: 200 })
  expect(await send(number, { ...template, to: '16505559999' })).toMatchObject({ status: 400 })
  expect(await send(number, { ...template, to: '16505559999' })).toMatchObject({ status: 200 })
  expect(await send(number, text)).toMatchObject({ status: 400 })
  expect(await send(number, text)).toMatchObject({ status: 200 })
  expect(await send(number, { status: 'read', message_id: await receive(number) })).toMatchObject({ status: 400 })
  expect(await send(number, { ...text, to: undefined, recipient: 'US.1349' })).toMatchObject({ status: 400 })
  const path = `/v23.0/${number.phone_number_id}`
  expect(await graph(number, 'GET', path)).toMatchObject({ status: 200 })
  expect(await graph(number, 'GET', `${path}?fields=status`)).toMatchObject({ status: 400 })
  expect((await trial.control('GET', 'faults')).body).toEqual({ data: [] })
})

test('drops the connection before anything happened', async () => {
  const trial = await startTrial()
  for (const fault of [{ kind: 'reset' }, { kind: 'timeout_before', ms: 30 }]) {
    await lay(trial, fault)
    await expect(trial.send(trial.number, template)).rejects.toThrow('fetch failed')
  }
  expect(await sentBy(trial)).toEqual([])
})

test('drops the connection after it accepted, and the statuses still come', async () => {
  const trial = await startTrial()
  await lay(trial, { kind: 'timeout_after_accept', ms: 30 })
  await expect(trial.send(trial.number, template)).rejects.toThrow('fetch failed')
  const [accepted] = await sentBy(trial)
  await until(() => expect(trial.receiver.statuses()).toMatchObject([{ id: accepted?.id }, {}, {}]))
})

test('answers a refusal even where an acceptance would have been withheld', async () => {
  const trial = await startTrial()
  await lay(trial, { kind: 'timeout_after_accept' })
  expect(await trial.send(trial.number, { type: 'text', text: {} })).toMatchObject({ status: 400 })
})

test('handles a delayed request later', async () => {
  const trial = await startTrial()
  await lay(trial, { kind: 'delay', ms: 500 })
  const startedAt = performance.now()
  const [delayed, swift] = await Promise.all([
    trial.send(trial.number, template).then(() => performance.now()),
    trial.send(trial.number, template).then(() => performance.now()),
  ])
  expect(Math.max(delayed, swift) - startedAt).toBeGreaterThan(495)
  expect(Math.min(delayed, swift) - startedAt).toBeLessThan(495)
  expect(await sentBy(trial)).toHaveLength(2)
})

test('is taken away by DELETE', async () => {
  const trial = await startTrial()
  await lay(trial, { kind: 'error' }, {}, 1_000)
  await trial.control('DELETE', 'faults')
  expect(await trial.send(trial.number, template)).toMatchObject({ status: 200 })
})

test('does not keep the simulator from stopping', async () => {
  const trial = await startTrial()
  const held = []
  for (const kind of ['timeout_before', 'timeout_after_accept', 'delay']) {
    await lay(trial, { kind, ms: 60_000 })
    held.push(trial.send(trial.number, template))
    await until(async () => expect((await trial.control('GET', 'faults')).body).toEqual({ data: [] }))
  }
  const [outcomes] = await Promise.all([Promise.allSettled(held), trial.stop()])
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
})
