import type { FastifyInstance } from 'fastify'
import type { App } from '../app.ts'
import { authenticate, ownNumber } from '../graph/authenticate.ts'
import { graphRequest, type GraphRoute, versionOf } from '../graph/graph-request.ts'
import { exchangeCode } from './exchange-code.ts'
import { listNumbers } from './list-numbers.ts'
import { deregister, register } from './register.ts'
import { requestSync } from './request-sync.ts'

/** What the platform's API has for the way from a dialog to a registered number. */
export function serveOnboarding(app: App, http: FastifyInstance) {
  http.get<GraphRoute>('/:version/oauth/access_token', (request) => {
    versionOf(request)
    return exchangeCode(app, request.query)
  })
  http.get<GraphRoute>('/:version/:id/phone_numbers', (request) => {
    versionOf(request)
    return listNumbers(app, authenticate(app, request), request.params.id, request.query)
  })
  for (const [name, act] of Object.entries({ register, deregister, smb_app_data: requestSync })) {
    http.post<GraphRoute>(`/:version/:id/${name}`, (request) => {
      const input = graphRequest(request)
      const caller = authenticate(app, request)
      return act(app, ownNumber(app, caller, request.params.id, 'post'), input)
    })
  }
}
