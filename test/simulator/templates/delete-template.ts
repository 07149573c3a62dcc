import type { App } from '../app.ts'
import { badParameter } from '../graph/graph-error.ts'
import type { Query } from '../graph/nodes.ts'
import { subcodes, templateError } from './template-error.ts'

/** `DELETE /{v}/{business_account_id}/message_templates?name=`: all its languages, or with `hsm_id` that one alone. */
export async function deleteTemplate({ templates, dataFile }: App, businessAccountId: string, query: Query) {
  const { name, hsm_id: id } = query
  if (!name) throw badParameter('The parameter name is required.')
  const found = templates
    .ofAccount(businessAccountId)
    .filter((template) => template.name === name && (id === undefined || template.id === id))
  if (found.length === 0)
    throw templateError(
      subcodes.notFound,
      'Message Template Not Found',
      "A message template with this name wasn't found.",
    )
  for (const template of found) templates.remove(template)
  await dataFile.save()
  return { success: true }
}
