import type { App } from '../app.ts'
import { badParameter } from '../graph/graph-error.ts'
import type { NodeWriter } from '../graph/nodes.ts'
import { optionalText, type Param, requiredList } from '../graph/params.ts'
import { checkComponents } from './check-components.ts'
import { requiredWordOf } from './required-word-of.ts'
import { review } from './review.ts'
import { Category, type Template } from './template.ts'
import { templateError } from './template-error.ts'

const dayMs = 24 * 3_600_000
const editable = new Set<Template['status']>(['APPROVED', 'REJECTED', 'PAUSED'])
const refusal = (message: string) => templateError(undefined, 'Template cannot be edited', message)

/** `POST /{v}/{template_id}`: new components in place of all the old, or a category; either is reviewed again. */
export const editTemplate: NodeWriter = (app, id, caller, change) => {
  const template = app.templates.find(id)
  if (template?.businessAccountId !== caller.number.businessAccountId) return undefined
  checkEditable(app, template)
  const isReviewed = 'components' in change.fields || 'category' in change.fields
  const ttl = change.fields['message_send_ttl_seconds']
  if (!isReviewed && ttl === undefined)
    throw badParameter('One of components, category and message_send_ttl_seconds is required.')
  const edited = app.templates.put({
    ...changed(app, template, change),
    ...(ttl !== undefined && { sendTtlSeconds: ttlOf(ttl) }),
  })
  if (isReviewed) {
    const editedAt = template.status === 'APPROVED' ? [...edited.editedAt, Date.now()] : edited.editedAt
    review(app, app.templates.put({ ...edited, editedAt, status: 'PENDING', rejectedReason: 'NONE' }))
  }
  app.dataFile.saveSoon()
  return { success: true }
}

function checkEditable({ settings }: App, { status, editedAt }: Template) {
  if (!editable.has(status)) throw refusal(`A template that is ${status} cannot be edited.`)
  if (status !== 'APPROVED' || !settings.current.template_edit_limits) return
  const within = (days: number) => editedAt.filter((at) => at > Date.now() - days * dayMs).length
  if (within(1) >= 1 || within(30) >= 10)
    throw refusal('An approved template can be edited once in 24 hours and ten times in 30 days.')
}

function changed(app: App, template: Template, change: Param): Template {
  for (const key of ['name', 'language'] as const)
    if (![undefined, template[key]].includes(optionalText(change, key)))
      throw refusal(`The ${key} of a template is fixed.`)
  const wanted = 'category' in change.fields ? requiredWordOf(change, 'category', Category.options) : template.category
  if (template.status === 'APPROVED' && wanted !== template.category)
    throw refusal('The category of an approved template is fixed.')
  if (!('components' in change.fields)) return { ...template, category: wanted }
  checkComponents(app, change, { category: wanted, parameterFormat: template.parameterFormat })
  const components = requiredList(change, 'components').map(({ fields }) => fields)
  return { ...template, category: wanted, components }
}

function ttlOf(value: unknown) {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 30 && value <= 2_592_000) return value
  throw badParameter('Param message_send_ttl_seconds must be from 30 to 2592000.')
}
