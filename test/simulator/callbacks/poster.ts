import { createHmac } from 'node:crypto'
import { Pool } from 'undici'

const timeoutMs = 10_000

/** Posts bytes, signed as they are, over kept connections; says whether the receiver answered 200. */
export function createPoster(callbackUrl: string, appSecret: string, connections: number) {
  const { origin, pathname, search } = new URL(callbackUrl)
  const timeouts = { connectTimeout: timeoutMs, headersTimeout: timeoutMs, bodyTimeout: timeoutMs }
  const pool = new Pool(origin, { connections, ...timeouts })

  async function post(bytes: Buffer) {
    const signature = createHmac('sha256', appSecret).update(bytes).digest('hex')
    const headers = { 'content-type': 'application/json', 'x-hub-signature-256': `sha256=${signature}` }
    try {
      const answer = await pool.request({ path: pathname + search, method: 'POST', headers, body: bytes })
      await answer.body.dump()
      return answer.statusCode === 200
    } catch {
      return false
    }
  }

  return { post, stop: () => pool.destroy() }
}
