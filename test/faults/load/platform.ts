import { hash } from 'node:crypto'
import { request } from 'undici'
import type { Json } from '../../journeys/client.ts'
import type { UpstreamSend } from '../history/history.ts'

export type Platform = ReturnType<typeof createPlatform>

/** The control side of the platform's simulator. */
export function createPlatform(url: string) {
  async function ask(method: 'GET' | 'POST' | 'DELETE', path: string, body?: object): Promise<Json> {
    const answer = await request(`${url}/control/${path}`, {
      method,
      ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
    const json = (await answer.body.json()) as Json
    if (answer.statusCode >= 300) throw new Error(`${path}: ${answer.statusCode} ${JSON.stringify(json)}`)
    return json
  }
  return {
    newNumber: () => ask('POST', 'numbers', {}),
    /** Somebody writes; answers the platform's id of it. */
    async write(phone: string, from: string, text: string): Promise<string> {
      const message = { from: from.replace('+', ''), type: 'text', text: { body: text } }
      const { id } = await ask('POST', 'inbound', {
        phone_number_id: phone,
        message,
        contact: { profile: { name: text } },
      })
      return id
    },
    /** Somebody sends a picture; answers the platform's id of the message. */
    async writeFile(phone: string, from: string, bytes: Uint8Array): Promise<string> {
      const file = await ask('POST', 'media', { mime_type: 'image/png', data: Buffer.from(bytes).toString('base64') })
      const { id } = await ask('POST', 'inbound', {
        phone_number_id: phone,
        message: {
          from: from.replace('+', ''),
          type: 'image',
          image: { ...file, sha256: hash('sha256', bytes, 'base64') },
        },
      })
      return id
    },
    layFault: (match: object, fault: object, times: number) => ask('POST', 'faults', { match, fault, times }),
    clearFaults: () => ask('DELETE', 'faults'),
    set: (settings: object) => ask('POST', 'settings', settings),
    async sent(phone: string): Promise<UpstreamSend[]> {
      const { data } = await ask('GET', `sent?phone_number_id=${phone}`)
      return data.map(({ id, at, body }: Json) => ({
        id,
        messageId: body.biz_opaque_callback_data,
        phone,
        at: Date.parse(at),
      }))
    },
  }
}
