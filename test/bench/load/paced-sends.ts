import { Pool } from 'undici'
import { z } from 'zod'
import { answerParent } from '../child.ts'
import type { Recipient } from '../project/write-in.ts'
import { epochMs } from './clock.ts'
import { pace } from './pace.ts'

export interface PacedSend {
  id: string
  /** When the request was begun, by this machine's clock, in epoch milliseconds. */
  askedAt: number
  answeredAt: number
}

interface Settings {
  origin: string
  key: string
  recipients: Recipient[]
  ratePerSecond: number
  seconds: number
}

const answer = z.object({ data: z.object({ id: z.string() }) })

/** Sends at a fixed rate, recipients in turn. Rejects when any is refused. */
async function run({ origin, key, recipients, ratePerSecond, seconds }: Settings): Promise<PacedSend[]> {
  const pool = new Pool(origin, { connections: 64 })
  const sends: PacedSend[] = []
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  await pace(ratePerSecond, seconds, async (n) => {
    const recipient = recipients[n % recipients.length]
    if (!recipient) throw new Error('there is nobody to send to')
    const body = JSON.stringify({
      messaging_product: 'chat',
      to: recipient.to,
      type: 'text',
      text: { body: `Message ${n}` },
    })
    const askedAt = epochMs()
    const path = `/v1/${recipient.phoneNumberId}/messages`
    const response = await pool.request({ method: 'POST', path, headers, body })
    const text = await response.body.text()
    if (response.statusCode !== 200) throw new Error(`a send is answered ${response.statusCode} ${text.slice(0, 300)}`)
    sends.push({ id: answer.parse(JSON.parse(text)).data.id, askedAt, answeredAt: epochMs() })
  })
  await pool.close()
  return sends
}

const commands = { run }
export type PacedSends = typeof commands
answerParent(commands)
