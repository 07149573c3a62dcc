import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../app.ts'
import type { Fault, Meeting } from '../faults.ts'
import { GraphError } from './graph-error.ts'
import type { GraphRoute } from './graph-request.ts'

/** Lets the requests of the platform's API meet the faults that were laid for them. */
export function applyFaults(app: App, http: FastifyInstance) {
  /** Accepted sends whose answer must not leave, each with the time until its connection drops. */
  const unanswered = new WeakMap<FastifyRequest, number>()

  http.addHook<GraphRoute>('preHandler', (request, reply, done) => {
    const fault = app.faults.all().length > 0 ? app.faults.take(meetingOf(request)) : undefined
    if (!fault) return done()
    if (fault.kind === 'timeout_after_accept') unanswered.set(request, fault.ms)
    strike(app, fault, request, reply, done)
  })
  http.addHook('onSend', (request, reply, _payload, done) => {
    const ms = unanswered.get(request)
    if (ms === undefined || reply.statusCode !== 200) return done()
    app.held.hold(request.raw.socket, ms)
  })
}

function strike(
  app: App,
  fault: Fault,
  request: FastifyRequest<GraphRoute>,
  reply: FastifyReply,
  done: (err?: Error) => void,
) {
  switch (fault.kind) {
    case 'error':
      return refuse(fault, reply, done)
    case 'reset':
      reply.hijack()
      return request.raw.socket.resetAndDestroy()
    case 'timeout_before':
      reply.hijack()
      return app.held.hold(request.raw.socket, fault.ms)
    case 'delay':
      return app.held.delay(request.raw.socket, fault.ms, done)
    case 'timeout_after_accept':
      return done()
  }
}

/** A status without a code is what a proxy in front of the platform would answer. */
function refuse({ code, status }: Fault & { kind: 'error' }, reply: FastifyReply, done: (err?: Error) => void) {
  if (code === undefined && status !== undefined)
    return void reply.code(status).type('text/html').send(`<html><body><h1>${status}</h1></body></html>`)
  done(new GraphError(code ?? 131000, { status, details: 'A fault that was laid through the control API.' }))
}

function meetingOf({ url, body }: FastifyRequest<GraphRoute>): Meeting {
  const { type, status, to, recipient } = body?.fields ?? {}
  const peer = to ?? recipient
  const named = status === 'read' ? status : (type ?? (peer === undefined ? undefined : 'text'))
  return { path: url, type: ifText(named), to: ifText(peer) }
}

const ifText = (value: unknown) => (typeof value === 'string' ? value : undefined)
