import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { App } from '../app.ts'
import { deleteMedia } from '../media/delete-media.ts'
import { serveDownloads } from '../media/download-media.ts'
import { sendMessage } from '../messages/send-message.ts'
import { listSubscribedApps, subscribeApp, unsubscribeApp } from '../numbers/subscribed-apps.ts'
import { createTemplate } from '../templates/create-template.ts'
import { deleteTemplate } from '../templates/delete-template.ts'
import { listTemplates } from '../templates/list-templates.ts'
import { serveOnboarding } from '../onboarding/serve-onboarding.ts'
import { authenticate, ownAccount, ownNumber } from './authenticate.ts'
import { answerErrors } from './answer-errors.ts'
import { applyFaults } from './apply-faults.ts'
import { unknownObject } from './graph-error.ts'
import { graphRequest, type GraphRoute, parseGraphBodies, versionOf } from './graph-request.ts'
import { readNode, writeNode } from './nodes.ts'
import { serveUploads } from './uploads.ts'

/** The platform's own API: its routes, each one line into the room that answers. */
export function serveGraph(app: App, http: FastifyInstance) {
  answerErrors(app, http)
  parseGraphBodies(http)
  applyFaults(app, http)

  http.post<GraphRoute>('/:version/:id/messages', (request) => {
    const input = graphRequest(request)
    const caller = authenticate(app, request)
    return sendMessage(app, ownNumber(app, caller, request.params.id, 'post'), input)
  })
  serveOnboarding(app, http)
  http.get<GraphRoute>('/:version/:id', (request) => {
    versionOf(request)
    const caller = authenticate(app, request)
    return readNode(app, request.params.id, caller, request.query)
  })
  http.post<GraphRoute>('/:version/:id', (request) => {
    const { message } = graphRequest(request)
    return writeNode(app, request.params.id, authenticate(app, request), message)
  })
  http.delete<GraphRoute>('/:version/:id', async (request) => {
    versionOf(request)
    const { id } = request.params
    const caller = authenticate(app, request)
    const answer = await deleteMedia(app, id, caller, request.query)
    if (!answer) throw unknownObject('delete', id)
    return answer
  })
  serveAccounts(app, http)
  serveDownloads(app, http)
  http.register(async (scope) => serveUploads(app, scope))
}

/** What hangs under a business account. */
function serveAccounts(app: App, http: FastifyInstance) {
  const account = (request: FastifyRequest<GraphRoute>, method: string) => {
    versionOf(request)
    return ownAccount(app, authenticate(app, request), request.params.id, method)
  }
  http.get<GraphRoute>('/:version/:id/subscribed_apps', (request) => listSubscribedApps(app, account(request, 'get')))
  http.post<GraphRoute>('/:version/:id/subscribed_apps', (request) =>
    subscribeApp(app, account(request, 'post'), graphRequest(request).message),
  )
  http.delete<GraphRoute>('/:version/:id/subscribed_apps', (request) => unsubscribeApp(app, account(request, 'delete')))
  http.post<GraphRoute>('/:version/:id/message_templates', (request) =>
    createTemplate(app, account(request, 'post'), graphRequest(request).message),
  )
  http.get<GraphRoute>('/:version/:id/message_templates', (request) => {
    const [path = ''] = request.url.split('?')
    return listTemplates(app, account(request, 'get'), request.query, path)
  })
  http.delete<GraphRoute>('/:version/:id/message_templates', (request) =>
    deleteTemplate(app, account(request, 'delete'), request.query),
  )
}
