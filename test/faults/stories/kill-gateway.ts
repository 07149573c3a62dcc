import { request } from 'undici'
import { expect } from 'vitest'
import { until } from '../../journeys/client.ts'
import { openWindows } from '../load/open-windows.ts'
import { kill, type Own } from '../own-stack.ts'
import { sendSurely } from './sends.ts'

const conversations = 20
const burst = 200

/** Requests that the gateway has taken, and that are not answered. */
async function unanswered({ stack }: Own): Promise<number> {
  const [gateway] = stack.read().services['gateway'] ?? []
  const page = await (await request(`${gateway?.url}/metrics`)).body.text()
  return Number(/^svc_http_requests_in_flight(?:\{[^}]*\})? (\d+)$/m.exec(page)?.[1])
}

/** Two hundred sends are with a gateway that is killed before one of them is answered. */
export async function killGateway(own: Own): Promise<void> {
  const { client, phones } = await openWindows(own.stack.read(), conversations)
  const messaging = own.stack.read().services['messaging']?.[0]?.pid ?? 0
  // Frozen, it takes what it is asked and answers nobody.
  process.kill(messaging, 'SIGSTOP')
  const texts = Array.from({ length: burst }, (_, n) => `burst ${n}`)
  const sending = texts.map((text, n) => sendSurely(client, phones[n % conversations] ?? '', text))
  await until(async () => expect(await unanswered(own)).toBe(burst))
  const killing = kill(own, 'gateway')
  process.kill(messaging, 'SIGCONT')
  await killing
  // The process is there, and takes nothing yet: what is older was done while nobody was there to hear of it.
  const backAt = Date.now()

  const accepted = await Promise.all(sending)
  const ids = new Set(accepted.map(({ id }) => id))
  expect(ids.size).toBe(burst)
  // Not all were handed on before the kill; those that were done are not done again.
  const done = accepted.filter(({ created_at: at }) => Date.parse(at) < backAt)
  expect(done).not.toEqual([])
  expect(done.filter(({ replayed }) => !replayed)).toEqual([])
  await until(async () => {
    const { body } = await client.api('GET', `/${client.phone}/messages?status=pending`)
    expect(body.data).toEqual([])
  }, 60_000)
  const sent = (await client.sent()).filter(({ body }) => phones.includes(body.to))
  expect(sent).toHaveLength(burst)
  expect(new Set(sent.map(({ body }) => body.biz_opaque_callback_data))).toEqual(ids)
}
