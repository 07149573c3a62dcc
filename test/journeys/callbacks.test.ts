import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { request } from 'undici'
import { expect, inject, test } from 'vitest'
import { callbackOf } from './callback-of.ts'
import { client, newPhone, until } from './client.ts'

const { api, phone, control, inbound, sendText } = client()
const url = inject('stack').base_url.replace(/\/v1$/, '/upstream/callbacks')
const secrets = JSON.parse(readFileSync(join(inject('stackDir'), 'secrets.json'), 'utf8')) as Record<string, string>
const appSecret = Object.entries(secrets).find(([name]) => /app.?secret/i.test(name))?.[1] ?? ''
const verifyToken = Object.entries(secrets).find(([name]) => /verify.?token/i.test(name))?.[1] ?? ''

const sign = (body: string, secret = appSecret) => `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`

async function post(body: string, signature: string | undefined) {
  const headers = {
    'content-type': 'application/json',
    ...(signature !== undefined && { 'x-hub-signature-256': signature }),
  }
  const answer = await request(url, { method: 'POST', headers, body })
  await answer.body.dump()
  return answer.statusCode
}

const message = (from: string, id: string, body: string) => ({
  from: from.slice(1),
  id,
  timestamp: String(Math.floor(Date.now() / 1000)),
  type: 'text',
  text: { body },
})

const envelope = (from: string, messages: object[]) =>
  JSON.stringify(callbackOf(phone, { contacts: [{ profile: { name: 'Many' }, wa_id: from.slice(1) }], messages }))

test('the verification handshake answers the challenge for the right token alone', async () => {
  const ask = async (token: string) => {
    const answer = await request(
      `${url}?hub.mode=subscribe&hub.challenge=12345&hub.verify_token=${encodeURIComponent(token)}`,
    )
    return [answer.statusCode, await answer.body.text()]
  }
  expect(await ask(verifyToken)).toEqual([200, '12345'])
  expect((await ask('wrong'))[0]).toBe(403)
})

test('a callback without the right signature is refused', async () => {
  const body = envelope(newPhone(), [])
  expect(await post(body, undefined)).toBe(401)
  expect(await post(body, sign(body, 'another secret'))).toBe(401)
  expect(await post(`${body} `, sign(body))).toBe(401)
  expect(await post(body, sign(body))).toBe(200)
})

test('a callback of 3 MB goes through, each message of it once', async () => {
  const from = newPhone()
  // As long as a text may be, of characters of three bytes.
  const messages = Array.from({ length: 240 }, (_, n) =>
    message(from, `wamid.BIG${process.pid}.${n}`, `${n} ${'€'.repeat(4000)}`),
  )
  const body = envelope(from, messages)
  expect(Buffer.byteLength(body)).toBeGreaterThan(2_800_000)
  expect(await post(body, sign(body))).toBe(200)
  expect(await post(body, sign(body))).toBe(200)
  await until(async () => {
    const { body: contacts } = await api('GET', `/${phone}/contacts?phone_number=${encodeURIComponent(from)}`)
    const [contact] = contacts.data
    const { body: conversations } = await api('GET', `/${phone}/conversations?contact_id=${contact.id}`)
    expect(conversations.data[0].unread_count).toBe(240)
  })
})

test('a send whose answer is lost is not sent twice: its callback ends it as sent', async () => {
  const to = newPhone()
  await inbound(to, 'hi')
  await control('/control/faults', { match: { to }, fault: { kind: 'timeout_after_accept', ms: 100 } })
  let id = ''
  await until(async () => {
    const answer = await sendText('lost answer', { to })
    expect(answer.status).toBe(200)
    id = answer.body.data.id
  })
  await until(async () => expect((await api('GET', `/${phone}/messages/${id}`)).body.data.status).toBe('read'))
})
