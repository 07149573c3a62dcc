import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { wholeBody } from '../whole-body.ts'

/** What a callback tells, as far as a test reads it. */
interface Change {
  field: string
  value: {
    messaging_product: string
    metadata: object
    contacts?: object[]
    messages?: Array<Record<string, unknown>>
    statuses?: Array<Record<string, unknown> & { id: string; status: string }>
  }
}

interface ReceivedCallback {
  raw: string
  signature: string | undefined
  /** The status that it was answered with. */
  answered: number
}

/** An endpoint for callbacks that keeps all that came, and answers what `answer` says. */
export async function startReceiver({ port = 0, verifyToken = 'verify-me' } = {}) {
  const callbacks: ReceivedCallback[] = []
  const receiver = {
    callbacks,
    answer: (_raw: string) => 200,
    url: '',
    port: 0,
    /** Every change of every callback that was answered 200, in the order in which they came. */
    changes: () => callbacks.filter(({ answered }) => answered === 200).flatMap(({ raw }) => changesOf(raw)),
    messages: () => receiver.changes().flatMap(({ value }) => value.messages ?? []),
    statuses: () => receiver.changes().flatMap(({ value }) => value.statuses ?? []),
    stop: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }

  async function take(request: IncomingMessage) {
    if (request.method === 'GET') return challenge(request.url ?? '')
    const raw = (await wholeBody(request)).toString()
    const signature = request.headers['x-hub-signature-256']
    const answered = receiver.answer(raw)
    callbacks.push({ raw, signature: typeof signature === 'string' ? signature : undefined, answered })
    return { status: answered, body: '' }
  }

  function challenge(path: string) {
    const { searchParams } = new URL(path, 'http://localhost')
    const known = searchParams.get('hub.mode') === 'subscribe' && searchParams.get('hub.verify_token') === verifyToken
    return known ? { status: 200, body: searchParams.get('hub.challenge') ?? '' } : { status: 403, body: '' }
  }

  const server = createServer((request, response) => {
    void take(request).then(({ status, body }) => response.writeHead(status).end(body))
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  receiver.port = (server.address() as AddressInfo).port
  receiver.url = `http://127.0.0.1:${receiver.port}/upstream/callbacks`
  return receiver
}

function changesOf(raw: string) {
  const { entry } = JSON.parse(raw) as { entry: Array<{ id: string; changes: Change[] }> }
  return entry.flatMap(({ id, changes }) => changes.map((change) => ({ account: id, ...change })))
}
