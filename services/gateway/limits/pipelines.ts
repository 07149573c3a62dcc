import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Connections } from './connections.ts'

/** Requests of one connection that may be in work, or wait for the answers before theirs. */
const mostOpen = 8

interface Pipeline {
  open: Set<ServerResponse>
  /** That of the newest request. */
  last: ServerResponse
  isOver: boolean
}

/**
 * Bounds what one connection asks ahead of its answers: the answer to the last request that is taken says that the connection
 * ends, and those behind it are not done. Node makes requests of all that came, some 2,500 in the 64 KiB of one read, before
 * anybody else has a turn: measured, 300 connections of a stranger took the gateway 80 s, and 3 GB for answers that he did not read.
 */
export function boundPipelines(server: Server, connections: Connections): void {
  const pipelines = new WeakMap<Socket, Pipeline>()
  const handlers = server.listeners('request') as RequestListener[]
  server.removeAllListeners('request')
  server.on('request', (request, response) => {
    if (mayCome(request, response)) for (const handle of handlers) handle(request, response)
  })

  function mayCome({ socket }: IncomingMessage, response: ServerResponse): boolean {
    const pipeline = pipelines.get(socket) ?? { open: new Set(), last: response, isOver: false }
    if (pipeline.isOver) return false
    const { open } = pipeline
    if (open.size === mostOpen) {
      endBehind(pipeline, socket)
      return false
    }
    pipelines.set(socket, pipeline)
    pipeline.last = response
    open.add(response)
    if (open.size === 1) connections.begins(socket, () => [...open].some(isInWork))
    response.on('close', () => {
      open.delete(response)
      if (open.size === 0) connections.ends(socket)
    })
    return true
  }
}

/** Its request has come whole, and its answer has not begun. */
const isInWork = ({ req, headersSent }: ServerResponse) => req.complete && !headersSent

function endBehind(pipeline: Pipeline, socket: Parsed) {
  pipeline.isOver = true
  // To a parser this says that what follows is no HTTP: it leaves it.
  if (socket.parser) socket.parser.onIncoming = () => 2
  const { last } = pipeline
  last.shouldKeepAlive = false
  // Its head may have been written before.
  last.once('finish', () => socket.destroySoon())
}

/** Node keeps the parser of requests at their socket. */
type Parsed = Socket & { parser?: { onIncoming: () => number } | null }
