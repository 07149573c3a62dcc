import { onTestFinished } from 'vitest'
import { until } from '../until.ts'
import type { SimulatorOptions } from './app.ts'
import { startReceiver } from './recording-receiver.ts'
import { startSimulator } from './simulator.ts'

interface ConnectedNumber {
  phone_number_id: string
  business_account_id: string
  display_phone_number: string
  status: string
  access_token: string
}

interface Answer<T> {
  status: number
  body: T
}

interface GraphAnswer {
  messaging_product?: string
  contacts?: Array<Record<string, string>>
  messages?: Array<{ id: string; message_status?: string }>
  success?: boolean
  error?: { message: string; code: number; error_data?: { messaging_product: string; details: string } }
  [field: string]: unknown
}

export const person = '16505551234'
export const secret = 'app-secret'

export type Trial = Awaited<ReturnType<typeof startTrial>>

/** A simulator, a receiver and a number, for one test, which stops them when it ends. */
export async function startTrial(options: Partial<SimulatorOptions> = {}) {
  const receiver = await startReceiver()
  const simulator = await startSimulator({
    appId: '1000',
    appSecret: secret,
    verifyToken: 'verify-me',
    callbackUrl: receiver.url,
    ...options,
  })
  const trial = { receiver, ...callsOf(simulator.url), stop: simulator.stop }
  onTestFinished(async () => {
    await simulator.stop()
    await receiver.stop()
  })
  return { ...trial, number: await trial.addNumber() }
}

function callsOf(url: string) {
  async function call<T>(method: string, path: string, body?: unknown, headers = {}): Promise<Answer<T>> {
    const init = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
    const response = await fetch(url + path, { method, headers, ...init })
    const text = await response.text()
    return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text }
  }
  const control = <T = Record<string, unknown>>(method: string, path: string, body?: unknown) =>
    call<T>(method, `/control/${path}`, body)
  const graph = ({ access_token: token }: { access_token: string }, method: string, path: string, body?: unknown) =>
    call<GraphAnswer>(method, path, body, { authorization: `Bearer ${token}` })

  return {
    url,
    control,
    graph,
    /** A number whose account has the approved template `order_ok`. */
    addNumber: async (body: object = {}) => {
      const { body: number } = await control<ConnectedNumber>('POST', 'numbers', body)
      await control('POST', 'templates', { phone_number_id: number.phone_number_id, name: 'order_ok' })
      return number
    },
    set: (settings: object) => control('POST', 'settings', settings),
    /** A message of `type` in the platform's envelope; the body's own keys win. */
    send: (number: ConnectedNumber, body: object, version = 'v23.0') =>
      graph(number, 'POST', `/${version}/${number.phone_number_id}/messages`, {
        messaging_product: 'whatsapp',
        to: `+${person}`,
        ...body,
      }),
    /** Uploads a file as a form; the field `type` only when it is given. */
    upload: async (number: ConnectedNumber, file: { type: string; bytes?: Uint8Array | string; field?: string }) => {
      const form = new FormData()
      form.set('messaging_product', 'whatsapp')
      if (file.field !== undefined) form.set('type', file.field)
      const bytes = Buffer.from(file.bytes ?? 'bytes')
      form.set('file', new Blob([bytes], { type: file.type }), 'a file.bin')
      const response = await fetch(`${url}/v23.0/${number.phone_number_id}/media`, {
        method: 'POST',
        headers: { authorization: `Bearer ${number.access_token}` },
        body: form,
      })
      return { status: response.status, body: (await response.json()) as GraphAnswer }
    },
    /** `person` writes, so that their window is open. */
    receive: async ({ phone_number_id }: ConnectedNumber, message: object = {}) => {
      const written = { type: 'text', from: person, text: { body: 'hello' }, ...message }
      return (await control<{ id: string }>('POST', 'inbound', { phone_number_id, message: written })).body.id
    },
    /** Resolves when no callback is due, waiting or on its way. */
    settled: () =>
      until(async () => {
        const { body } = await control<Record<string, number>>('GET', 'callbacks')
        if (body['scheduled'] || body['waiting'] || body['in_flight']) throw new Error(JSON.stringify(body))
      }),
  }
}
