import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'

export type Take = (request: FastifyRequest, reply: FastifyReply) => void

/**
 * A route whose requests are taken over as soon as it is found: Fastify then neither reads nor judges a body, nor waits
 * for an answer. `take` hijacks the reply.
 */
export const takeOver = (method: RouteOptions['method'], url: string, take: Take): RouteOptions => ({
  method,
  url,
  onRequest: (request, reply, _next) => take(request, reply),
  handler: () => {
    throw new Error('a request that was taken over went on')
  },
})
