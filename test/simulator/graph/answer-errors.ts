import type { FastifyInstance } from 'fastify'
import type { App } from '../app.ts'
import { wordsOf } from '../words.ts'
import { errorBody, GraphError, unknownPath } from './graph-error.ts'

/** Everything that goes wrong leaves in the platform's shape. */
export function answerErrors({ settings }: App, http: FastifyInstance) {
  http.setNotFoundHandler((request) => {
    throw unknownPath(request.url)
  })
  http.setErrorHandler((err, _request, reply) => {
    const refusal = err instanceof GraphError ? err : ofFastify(err)
    return reply.code(refusal.status).send(errorBody(refusal, wordsOf(settings.current)))
  })
}

/** Fastify marks the caller's own mistakes (a body too large) with a 4xx; anything else is a mistake of this program. */
function ofFastify(err: unknown) {
  if (err instanceof Error && 'statusCode' in err && Number(err.statusCode) < 500)
    return new GraphError(100, { message: `(#100) ${err.message}`, status: Number(err.statusCode) })
  console.error(err)
  return new GraphError(131000, { details: 'The simulator failed.' })
}
