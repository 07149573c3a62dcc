import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { answerParent } from '../child.ts'

// The subscribers of the bench: an HTTP server that does next to nothing, so that it is never what is measured. It reads
// requests with a length, such as every sender here makes, and answers each with 200 and no body.

export interface Arrival {
  eventId: string
  path: string
  /** Epoch milliseconds of the request's first bytes. */
  at: number
  /** The envelope's time; null where there is none. */
  createdAt: number | null
}

const answer = Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
const headEnd = Buffer.from('\r\n\r\n')
const nothing = Buffer.alloc(0)

/** Ids of events that came, and when the latest new one did. */
let seen = new Set<string>()
let lastAt = 0
/** Filled while `record` asks for it. */
let arrivals: Arrival[] = []
let keep = false
/** Paths whose requests are never answered, and the connections on which they wait. */
let hanging = new Set<string>()
let held = new Set<Socket>()

function accept(socket: Socket) {
  let waiting: Buffer = nothing
  let begunAt = 0
  socket.setNoDelay(true)
  socket.on('error', () => {})
  socket.on('close', () => held.delete(socket))
  socket.on('data', (chunk: Buffer) => {
    if (waiting.length === 0) begunAt = Date.now()
    waiting = waiting.length === 0 ? chunk : Buffer.concat([waiting, chunk])
    for (let size = take(socket, waiting, begunAt); size > 0; size = take(socket, waiting, begunAt)) {
      waiting = waiting.subarray(size)
    }
  })
}

/** Handles the request at the start of the bytes; answers its size, 0 when it is not whole yet. */
function take(socket: Socket, bytes: Buffer, at: number) {
  const end = bytes.indexOf(headEnd)
  if (end < 0) return 0
  const head = bytes.toString('latin1', 0, end)
  const length = Number(headerOf(head, 'content-length') ?? NaN)
  if (Number.isNaN(length)) {
    socket.destroy(new Error('a request without a length'))
    return 0
  }
  const size = end + headEnd.length + length
  if (bytes.length < size) return 0
  note(head, at, () => bytes.toString('utf8', end + headEnd.length, size))
  if (hanging.size > 0 && hanging.has(pathOf(head))) held.add(socket)
  else socket.write(answer)
  return size
}

const pathOf = (head: string) => head.slice(head.indexOf(' ') + 1, head.indexOf(' ', head.indexOf(' ') + 1))

function headerOf(head: string, name: string) {
  const found = new RegExp(`\r\n${name}: *([^\r]*)`, 'i').exec(head)
  return found?.[1]
}

function note(head: string, at: number, body: () => string) {
  const eventId = headerOf(head, 'x-svc-event-id') ?? ''
  if (!seen.has(eventId)) {
    seen.add(eventId)
    lastAt = at
  }
  if (!keep) return
  const { created_at: createdAt } = JSON.parse(body()) as { created_at?: string }
  arrivals.push({ eventId, path: pathOf(head), at, createdAt: createdAt === undefined ? null : Date.parse(createdAt) })
}

const commands = {
  async start() {
    const server = createServer(accept)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
  },
  /** Forgets what came; from now on keeps every arrival, or counts only. */
  record(input: { keep: boolean }) {
    seen = new Set()
    arrivals = []
    keep = input.keep
    lastAt = 0
  },
  count: () => ({ events: seen.size, lastAt }),
  /** How many events have come, which are forgotten: those of the next time are counted apart. */
  take() {
    const events = seen.size
    seen = new Set()
    return events
  },
  arrivals: () => arrivals,
  hang(paths: string[]) {
    hanging = new Set(paths)
  },
  /** Answers none any more who waits: their connections end. */
  release() {
    hanging = new Set()
    for (const socket of held) socket.destroy()
    held = new Set()
  },
}
export type Receiver = typeof commands
answerParent(commands)
