import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from './testing/gateway.ts'

let gateway: TestGateway
let key: string
beforeAll(async () => {
  gateway = await startTestGateway()
  key = gateway.platform.issueKey().text
})
afterAll(() => gateway.close())

const send = (idempotencyKey: string | string[], apiKey = key) =>
  gateway.ask('/v1/echoes/a?q=1', { key: apiKey, body: { a: 1 }, headers: { 'idempotency-key': idempotencyKey } })

test.each(['', 'x'.repeat(256), 'ü', 'a\tb'])('the key "%s" is refused', async (idempotencyKey) => {
  const answer = await send(idempotencyKey)
  expect(answer.status).toBe(400)
  expect(answer.json().error).toMatchObject({ code: 'invalid_field_value', param: 'Idempotency-Key' })
})

test('what is no POST has no key: the header is not even looked at', async () => {
  const answer = await gateway.ask('/v1/tagged?text=a', { key, headers: { 'idempotency-key': 'x'.repeat(256) } })
  expect(answer.status).toBe(200)
})

test('keys of 1 to 255 printable characters travel with the fingerprint of the request', async () => {
  const fingerprints = new Set<string>()
  for (const idempotencyKey of ['x', 'x'.repeat(255), '~ !']) {
    const { idempotency } = (await send(idempotencyKey)).json().data.caller
    expect(idempotency.key).toBe(idempotencyKey)
    fingerprints.add(idempotency.fingerprint)
  }
  expect(fingerprints.size).toBe(1)
  const other = await gateway.ask('/v1/echoes/a?q=2', { key, body: { a: 1 }, headers: { 'idempotency-key': 'x' } })
  expect(fingerprints).not.toContain(other.json().data.caller.idempotency.fingerprint)
})

test('the double of a running request is a 409 at once; other keys and organizations go on', async () => {
  const asked = gateway.passedOn.length
  const release = gateway.holdEchoes()
  const first = send('same')
  await expect.poll(() => gateway.passedOn.length).toBe(asked + 1)
  const doubles = await Promise.all(Array.from({ length: 49 }, () => send('same')))
  for (const { status, json } of doubles) expect([status, json().error.code]).toEqual([409, 'idempotency_in_progress'])
  const others = Promise.all([send('other'), send('same', gateway.platform.issueKey().text)])
  await expect.poll(() => gateway.passedOn.length).toBe(asked + 3)
  release()
  expect((await first).status).toBe(201)
  expect((await others).map(({ status }) => status)).toEqual([201, 201])
  expect((await send('same')).status).toBe(201)
})

test('another request with the key of one that runs is asked about: the service refuses it as a reuse', async () => {
  const asked = gateway.passedOn.length
  const release = gateway.holdEchoes()
  const headers = { 'idempotency-key': 'other bytes' }
  const requests = [send('other bytes')]
  requests.push(gateway.ask('/v1/echoes/a?q=1', { key, body: { a: 2 }, headers }))
  requests.push(gateway.ask('/v1/echoes/a?q=2', { key, body: { a: 1 }, headers }))
  await expect.poll(() => gateway.passedOn.length).toBe(asked + 3)
  release()
  expect((await Promise.all(requests)).map(({ status }) => status)).toEqual([201, 201, 201])
})

test('a request that fails frees its key', async () => {
  const headers = { 'idempotency-key': 'failing' }
  for (let n = 0; n < 2; n++) {
    expect((await gateway.ask('/v1/echoes/a', { key, body: 'x', headers })).status).toBe(400)
  }
})
