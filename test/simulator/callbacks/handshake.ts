import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { request } from 'undici'

const firstWaitMs = 200
const longestWaitMs = 5_000

export type Handshake = ReturnType<typeof startHandshake>

/** Asks the receiver, until it answers, whether it is ours: `verified` is null before, then says if it echoed the challenge. */
export function startHandshake(callbackUrl: string, verifyToken: string) {
  const stopping = new AbortController()
  const handshake = {
    verified: null as boolean | null,
    stop: async () => {
      stopping.abort()
      await asked
    },
  }

  async function ask() {
    for (let waitMs = firstWaitMs; !stopping.signal.aborted; waitMs = Math.min(waitMs * 2, longestWaitMs)) {
      try {
        handshake.verified = await echoes(callbackUrl, verifyToken, stopping.signal)
        return
      } catch {
        await delay(waitMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      }
    }
  }

  const asked = ask()
  return handshake
}

async function echoes(callbackUrl: string, verifyToken: string, signal: AbortSignal) {
  const challenge = `${randomInt(1e9)}`
  const url = new URL(callbackUrl)
  url.searchParams.set('hub.mode', 'subscribe')
  url.searchParams.set('hub.challenge', challenge)
  url.searchParams.set('hub.verify_token', verifyToken)
  const { statusCode, body } = await request(url, { signal, headersTimeout: 5_000, bodyTimeout: 5_000 })
  const text = await body.text()
  if (statusCode >= 500) throw new Error(`the receiver answered ${statusCode}`)
  return statusCode === 200 && text === challenge
}
