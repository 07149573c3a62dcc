import type { App } from '../app.ts'
import { badParameter } from '../graph/graph-error.ts'
import type { NodeReader } from '../graph/nodes.ts'
import type { Template } from './template.ts'

/** What can be told of a template. */
const fields = {
  id: ({ id }) => id,
  name: ({ name }) => name,
  language: ({ language }) => language,
  status: ({ status }) => status,
  category: ({ category }) => category,
  parameter_format: ({ parameterFormat }) => parameterFormat,
  components: (template, app) => shownComponents(template, app),
  rejected_reason: ({ rejectedReason }) => rejectedReason,
  quality_score: ({ quality }) => ({ score: quality }),
  message_send_ttl_seconds: ({ sendTtlSeconds }) => sendTtlSeconds,
} satisfies Record<string, (template: Template, app: App) => unknown>

type Field = keyof typeof fields
const isField = (name: string): name is Field => Object.hasOwn(fields, name)
const shownByDefault = 'name,parameter_format,components,language,status,category,id'

/** @throws 100 for a field that templates do not have */
export function showTemplate(app: App, template: Template, wanted = shownByDefault) {
  const names = new Set([...wanted.split(','), 'id'])
  return Object.fromEntries(
    Array.from(names, (name) => {
      if (!isField(name)) throw badParameter(`Tried accessing nonexisting field (${name})`)
      return [name, fields[name](template, app)]
    }),
  )
}

/** Where a handle stood, the platform answers the sample's address. */
function shownComponents({ components }: Template, app: App) {
  return components.map((component) => {
    const { example } = component
    if (typeof example !== 'object' || example === null || !('header_handle' in example)) return component
    const handles = Array.isArray(example.header_handle) ? example.header_handle : [example.header_handle]
    const urls = handles.map((handle: unknown) => app.url() + app.uploads.pathOf(String(handle)))
    return { ...component, example: { ...example, header_handle: urls } }
  })
}

/** `GET /{v}/{template_id}?fields=` */
export const readTemplate: NodeReader = (app, id, caller, query) => {
  const template = app.templates.find(id)
  if (template?.businessAccountId !== caller.number.businessAccountId) return undefined
  return showTemplate(app, template, query['fields'])
}
