import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { App } from '../app.ts'
import { showTemplate } from '../templates/read-template.ts'
import { tellCategory, tellQuality, tellStatus } from '../templates/tell.ts'
import { Category, Components, ParameterFormat, Quality, type Template, TemplateStatus } from '../templates/template.ts'
import { BadField, parseBody } from './parse.ts'

const NewTemplate = z.strictObject({
  phone_number_id: z.string(),
  name: z.string().regex(/^[a-z0-9_]{1,512}$/, 'must be lower case letters, digits and underscores'),
  language: z.string().min(2).default('en_US'),
  category: Category.default('UTILITY'),
  status: TemplateStatus.default('APPROVED'),
  parameter_format: ParameterFormat.default('POSITIONAL'),
  components: Components.default([{ type: 'BODY', text: 'Your order has been shipped.' }]),
})

const Change = z.strictObject({
  status: TemplateStatus.optional(),
  /** Of a rejection. */
  reason: z.string().min(1).optional(),
  category: Category.optional(),
  quality: Quality.optional(),
})

interface Route {
  Params: { id: string }
  Querystring: { phone_number_id?: string }
}

/** Templates as the platform's own people change them: made without a review, decided, paused, moved, taken away. */
export function controlTemplates(app: App, http: FastifyInstance) {
  const { templates } = app
  const show = (template: Template) =>
    showTemplate(
      app,
      template,
      'id,name,language,status,category,components,parameter_format,rejected_reason,quality_score',
    )
  const find = (id: string) => {
    const template = templates.find(id)
    if (!template) throw new BadField('id', 'No template of this id.')
    return template
  }

  http.get<Route>('/control/templates', ({ query }) => {
    const account = query.phone_number_id && app.numbers.find(query.phone_number_id)?.businessAccountId
    const shown = templates.all().filter(({ businessAccountId }) => !account || businessAccountId === account)
    return { data: shown.map(show) }
  })
  http.post('/control/templates', (request) => show(makeTemplate(app, parseBody(NewTemplate, request.body))))
  http.post<Route>('/control/templates/:id', (request) => {
    const { status, reason, category, quality } = parseBody(Change, request.body)
    const { id } = find(request.params.id)
    const rejectedReason = reason ?? (status === 'REJECTED' ? 'INVALID_FORMAT' : 'NONE')
    if (category) tellCategory(app, find(id), category)
    if (quality) tellQuality(app, find(id), quality)
    if (status) tellStatus(app, { ...find(id), status, rejectedReason })
    return show(find(id))
  })
  http.delete<Route>('/control/templates/:id', (request) => {
    const template = find(request.params.id)
    templates.forget(template)
    app.dataFile.saveSoon()
    return show(template)
  })
}

function makeTemplate(app: App, body: z.output<typeof NewTemplate>) {
  const number = app.numbers.find(body.phone_number_id)
  if (!number) throw new BadField('phone_number_id', 'No number of this id: POST /control/numbers makes one.')
  const { name, language, category, status, components, parameter_format: parameterFormat } = body
  const key = { businessAccountId: number.businessAccountId, name, language }
  if (app.templates.of(key)) throw new BadField('name', 'There is a template of this name and language.')
  app.dataFile.saveSoon()
  return app.templates.add({ ...key, category, status, components, parameterFormat })
}
