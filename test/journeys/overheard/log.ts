import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { request } from 'undici'
import { expect } from 'vitest'
import { type Json, until } from '../client.ts'
import { type Watched, sentEvents } from './watch.ts'

/** Words that may stand in no log: what customers write, who they are, and what opens doors. */
const canary = 'canary-7f3a-body'
const secretWord = 'canary-in-a-path'
const stranger = '+15550107777'

/** The log has a line for each request, question, event, attempt and part of a callback, in the same words, and nothing private. Stops the stack. */
export async function readLog(watched: Watched) {
  const { client, stack, receiver, secrets } = watched
  const { phone, control, api, sendText } = client
  const { organization_id: organization, demo_contact: contact, phone_number_id: phoneNumberId } = stack.read()
  const { body } = await sendText(canary)
  await control('/control/inbound', {
    phone_number_id: phone,
    message: { from: contact.phone_number.slice(1), type: 'text', text: { body: `${canary} in` } },
  })
  await sendText(canary, { to: stranger })
  await api('GET', `/contacts/${encodeURIComponent(stranger)}`)
  await api('GET', `/contacts?search=${encodeURIComponent(stranger)}`)
  await api('POST', `/${phone}/messages`, { body: `{"to":"${stranger}","text":"${canary}` })
  await api('GET', '/me', { key: `${stack.read().api_key}x` })
  const { public_url: gateway = '' } = stack.read().services['gateway']?.[0] ?? {}
  for (const path of ['/setup/', '/media/', '/v1/no/']) {
    await (await request(`${gateway}${path}${secretWord}`)).body.dump()
  }
  // The last of all: what happens to this customer after a refused one waits for its next attempt.
  receiver.respondWith((response, { raw }) => response.writeHead(raw.includes('131026') ? 500 : 200).end(canary))
  await control('/control/faults', {
    match: { to: contact.phone_number },
    fault: { kind: 'error', code: 131026 },
    times: 1,
  })
  await sendText(`${canary} fails`)
  await until(() => Promise.resolve(expect(sentEvents(watched, `${canary}"`).length).toBeGreaterThan(0)))
  await until(() =>
    Promise.resolve(expect(receiver.of('message.received').some(({ raw }) => raw.includes(canary))).toBe(true)),
  )
  await until(async () => {
    const { data } = (await api('GET', `/${phone}/messages`)).body
    expect(
      data.filter(({ content, status }: Json) => content === `${canary} fails` && status === 'failed'),
    ).toHaveLength(1)
  })
  await until(() =>
    Promise.resolve(expect(receiver.of('message.status').some(({ raw }) => raw.includes('131026'))).toBe(true)),
  )
  await stack.stop()

  const text = globSync(join(stack.dataDir, 'logs/{gateway,messaging,directory,platform,webhooks}*.log'))
    .map((file) => readFileSync(file, 'utf8'))
    .join('')
  const unsaid = [
    canary,
    secretWord,
    stranger.slice(1),
    contact.phone_number.slice(1),
    'trace me',
    receiver.url,
    ...secrets,
  ]
  expect(unsaid.filter((word) => text.includes(word))).toEqual([])

  const lines: Json[] = text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
  const all = expect.any(Number)
  const word = expect.any(String)
  const id = expect.stringMatching(/^[0-9a-f]{32}$/)
  const having = (line: object) => expect(lines).toContainEqual(expect.objectContaining(line))
  having({
    msg: 'http',
    method: 'POST',
    route: '/v1/:phone_number_id/messages',
    status: 200,
    organization,
    request: word,
    trace: id,
    durationMs: all,
  })
  having({ msg: 'rpc', subject: 'rpc.messaging.send-message', organization, request: word, trace: id, durationMs: all })
  having({
    msg: 'event',
    consumer: 'webhooks-fan-out',
    organization,
    event: `${body.data.id}:sent`,
    trace: id,
    durationMs: all,
  })
  having({
    msg: 'attempt',
    name: 'messaging',
    organization,
    number: phoneNumberId,
    message: body.data.id,
    attempt: 1,
    outcome: 'accepted',
    trace: id,
    durationMs: all,
  })
  having({ msg: 'attempt', name: 'messaging', organization, outcome: 'refused', code: 131026 })
  having({
    msg: 'attempt',
    name: 'webhooks',
    organization,
    delivery: word,
    event: 'message.sent',
    outcome: 'succeeded',
    durationMs: all,
  })
  having({ msg: 'attempt', name: 'webhooks', organization, outcome: 'failed', status: 500 })
  having({ msg: 'callback item', organization, kind: 'message', outcome: 'handled', durationMs: all })
}
