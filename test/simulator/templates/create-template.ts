import type { App } from '../app.ts'
import { badParameter, GraphError } from '../graph/graph-error.ts'
import { optionalText, type Param, requiredList, requiredText } from '../graph/params.ts'
import { checkComponents } from './check-components.ts'
import { languages } from './languages.ts'
import { requiredWordOf } from './required-word-of.ts'
import { review } from './review.ts'
import { Category, ParameterFormat, type Template } from './template.ts'
import { subcodes, templateError } from './template-error.ts'

/** `POST /{v}/{business_account_id}/message_templates`: checked, then reviewed as the settings say. */
export function createTemplate(app: App, businessAccountId: string, definition: Param) {
  const key = { businessAccountId, name: checkName(definition), language: checkLanguage(definition) }
  const category = requiredWordOf(definition, 'category', Category.options)
  const format = optionalText(definition, 'parameter_format')
  const parameterFormat =
    format === undefined ? 'POSITIONAL' : requiredWordOf(definition, 'parameter_format', ParameterFormat.options)
  requiredList(definition, 'components')
  checkComponents(app, definition, { category, parameterFormat })
  checkRoom(app, key)

  const components = requiredList(definition, 'components').map(({ fields }) => fields)
  const status = 'PENDING'
  const template = app.templates.add({ ...key, category, parameterFormat, components, status })
  const { id, status: decided } = review(app, template)
  app.dataFile.saveSoon()
  return { id, status: decided, category }
}

function checkName(definition: Param) {
  const name = requiredText(definition, 'name')
  if (/^[a-z0-9_]{1,512}$/.test(name)) return name
  throw badParameter('Param name must be 1 to 512 lower case letters, digits and underscores.')
}

function checkLanguage(definition: Param) {
  const language = requiredText(definition, 'language')
  if (languages.has(language)) return language
  throw badParameter(`Param language must be one of the supported languages - got "${language}".`)
}

function checkRoom({ templates, settings }: App, key: Pick<Template, 'businessAccountId' | 'name' | 'language'>) {
  if (templates.of(key))
    throw templateError(
      subcodes.exists,
      'Content in This Language Already Exists',
      `There is already ${key.language} content for this template. You can create a new template and try again.`,
    )
  if (templates.isHeld(key))
    throw templateError(
      subcodes.nameIsHeld,
      'Message Template Language Is Being Deleted',
      `New ${key.language} content can't be added while the existing content is being deleted. Try again later.`,
    )
  const { templates_per_hour: perHour, template_quota: quota } = settings.current
  if (templates.ofAccount(key.businessAccountId).length >= quota)
    throw templateError(
      subcodes.quota,
      'Template limit reached',
      `This business account has ${quota} templates already.`,
    )
  if (templates.countCreation(key.businessAccountId) > perHour)
    throw new GraphError(80007, { details: `More than ${perHour} templates were created within an hour.` })
}
