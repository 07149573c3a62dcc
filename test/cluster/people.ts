import { setTimeout as sleep } from 'node:timers/promises'
import type { History } from '../faults/history/history.ts'
import { type Random, randomOf } from '../faults/random.ts'
import { clientOf, newPhone } from '../journeys/client.ts'
import { untilTrue } from './cluster.ts'
import type { HonestClient } from './honest-client.ts'
import { seed } from './seed.ts'
import type { Stack } from '../journeys/start-stack.ts'

export interface Scene {
  /** Whether the event of this inbound message has been delivered. */
  hasCome: (id: string) => boolean
  stack: Stack
  history: History
  client: HonestClient
  isOver: () => boolean
}

/** What happened at the platform: who wrote what, and when. */
export interface Written {
  id: string
  writtenAt: number
}

/** What the pace to one recipient lets pass for a quarter of an hour: 45 at once, then one in 6 s. */
const burst = 3
const restMs = 16_000

/**
 * Customers who write, and a business that answers each of them, one thing after the other; ends when it is over. Answers
 * why conversations ended before.
 */
export async function play(scene: Scene, people: number, written: Written[]): Promise<string[]> {
  const { inbound } = clientOf(scene.stack)
  const write = async (number: string, text: string) => {
    const writtenAt = Date.now()
    const id = await inbound(number, text)
    written.push({ id, writtenAt })
    return id
  }
  const numbers = Array.from({ length: people }, newPhone)
  const played = numbers.map(async (number, n) => {
    await sleep((n * restMs) / people)
    const id = await write(number, 'hello')
    // Whoever has not written may not be written to.
    await untilTrue(() => scene.hasCome(id), 30_000, 'The first message does not come')
    await converse(scene, number, write, randomOf(seed, `person ${n}`))
  })
  return (await Promise.allSettled(played)).flatMap((end) => (end.status === 'rejected' ? [String(end.reason)] : []))
}

async function converse(
  { stack, history, client, isOver }: Scene,
  number: string,
  write: (number: string, text: string) => Promise<string>,
  random: Random,
) {
  const path = `/${stack.phone_number_id}/messages`
  for (let n = 0; !isOver(); n++) {
    const text = `${number} ${n}`
    const body = { messaging_product: 'chat', to: number, type: 'text', text: { body: text } }
    const { startedAt, endedAt: acceptedAt, body: answer } = await client.ask('POST', path, body, text)
    const { id, conversation_id: conversation } = answer.data
    const place = { tenant: stack.organization_id, phone: stack.phone_number_id }
    history.accepted.push({ id, ...place, conversation, startedAt, acceptedAt })
    if (n % 3 === 0) await write(number, `${text} answered`)
    if (n % 3 === 1) await read(history, client, `${path}/${id}`)
    if (n % burst === burst - 1) await sleep(restMs * (0.5 + random()))
  }
}

async function read(history: History, client: HonestClient, path: string) {
  const { tries, body } = await client.ask('GET', path)
  const { startedAt = 0, endedAt = 0 } = tries.at(-1) ?? {}
  const { id: messageId, status, error } = body.data
  history.readings.push({ messageId, startedAt, endedAt, status, code: error?.code ?? null })
}
