import type { FastifyInstance } from 'fastify'
import type { App } from '../app.ts'
import { FaultRule } from '../faults.ts'
import { parseBody } from './parse.ts'

/** Lays faults in the way of the platform's own API. */
export function controlFaults({ faults }: App, http: FastifyInstance) {
  const all = () => ({ data: faults.all() })
  http.get('/control/faults', all)
  http.post('/control/faults', (request) => {
    faults.add(parseBody(FaultRule, request.body))
    return all()
  })
  http.delete('/control/faults', () => {
    faults.clear()
    return all()
  })
}
