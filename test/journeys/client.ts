import { request } from 'undici'
import { expect, inject } from 'vitest'
import { checkAnswer } from './openapi-check.ts'
import type { Stack } from './start-stack.ts'

/** A JSON value of which a test knows the shape. */
export type Json = any

export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: Json
}

interface Options {
  key?: string | null
  headers?: Record<string, string>
  body?: unknown
  /** In the place of a body. */
  form?: FormData
  /** Which gateway, when there are several. */
  gateway?: number
}

async function bodyOf({ body, form }: Options) {
  if (form) {
    const encoded = new Response(form)
    const type = encoded.headers.get('content-type') ?? ''
    return { headers: { 'content-type': type }, bytes: Buffer.from(await encoded.arrayBuffer()) }
  }
  if (body === undefined) return undefined
  const bytes = typeof body === 'string' ? body : JSON.stringify(body)
  return { headers: { 'content-type': 'application/json' }, bytes }
}

/** The public API of a stack. Every JSON answer is held against our own OpenAPI. */
export function clientOf(stack: Stack) {
  const gateways = (stack.services['gateway'] ?? []).map(({ public_url }) => `${public_url ?? ''}/v1`)
  let turn = 0

  async function api(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    options: Options = {},
  ): Promise<Answer> {
    const { key = stack.api_key, headers = {}, gateway = turn++ } = options
    const body = await bodyOf(options)
    const base = gateways[gateway % gateways.length] ?? stack.base_url
    const answer = await request(`${base}${path}`, {
      method,
      headers: {
        ...(key !== null && { authorization: `Bearer ${key}` }),
        ...body?.headers,
        ...headers,
      },
      body: body?.bytes ?? null,
    })
    const text = await answer.body.text()
    const json: Json = text === '' ? undefined : JSON.parse(text)
    const [bare = ''] = path.split('?')
    checkAnswer(method, bare, answer.statusCode, json)
    if (bare !== '/openapi.json') {
      const id: unknown = json.request_id ?? json.error?.request_id
      expect(id).toMatch(/^req_/)
      if (!answer.headers['idempotent-replayed']) expect(answer.headers['x-request-id']).toBe(id)
    }
    return { status: answer.statusCode, headers: answer.headers, body: json }
  }

  const phone = stack.phone_number_id

  return {
    api,
    phone,
    /** The platform's simulator. */
    control: (path: string, body: unknown, method: 'GET' | 'POST' | 'DELETE' = 'POST') =>
      control(stack, path, body, method),
    sent: async (): Promise<Json[]> => {
      const answer = await request(`${stack.simulator_url}/control/sent?phone_number_id=${phone}`)
      return ((await answer.body.json()) as { data: Json[] }).data
    },
    sendText: (text: string, options: Options & { to?: string } = {}) =>
      api('POST', `/${phone}/messages`, {
        ...options,
        body: {
          messaging_product: 'chat',
          to: options.to ?? stack.demo_contact.phone_number,
          type: 'text',
          text: { body: text },
        },
      }),
    /** A customer writes in; answers the platform's id. */
    inbound: async (from: string, text: string, name = 'Customer'): Promise<string> => {
      const { id } = await control(stack, '/control/inbound', {
        phone_number_id: phone,
        message: { from: from.replace('+', ''), type: 'text', text: { body: text } },
        contact: { profile: { name } },
      })
      return id as string
    },
  }
}

async function control(
  { simulator_url: url }: Stack,
  path: string,
  body: unknown,
  method: 'GET' | 'POST' | 'DELETE' = 'POST',
): Promise<Json> {
  const answer = await request(`${url}${path}`, {
    method,
    ...(method === 'POST' && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  })
  const json = await answer.body.json()
  if (answer.statusCode >= 300) throw new Error(`${path}: ${answer.statusCode} ${JSON.stringify(json)}`)
  return json
}

export { until } from '../until.ts'

export const client = () => clientOf(inject('stack'))

let numbers = Math.floor(Math.random() * 9_000)
/** A phone number that no other test of the run uses. */
export const newPhone = () =>
  `+1555${String(2_000_000 + ((numbers += 1) % 900_000) + (process.pid % 100) * 10_000).padStart(7, '0')}`
