import { z } from 'zod'
import { rpc } from '../api/contract.ts'
import { idOf } from '../values/ids.ts'
import { pageQuery } from '../api/page.ts'
import { chatAccount, phoneParams, text, time } from './fields.ts'

const category = z.enum(['MARKETING', 'UTILITY', 'AUTHENTICATION']).meta({ id: 'TemplateCategory' })

const language = z
  .string()
  .min(2)
  .max(15)
  .regex(/^[A-Za-z]{2,3}([_-][A-Za-z0-9]+)*$/, 'must be a language such as en or en_US')
  .meta({ example: 'en_US' })

/** To look for one: a word that is no language finds nothing, as one in which no template is written. */
const anyLanguage = text(2, 15).meta({ example: 'en_US' })

export const templateName = z
  .string()
  .trim()
  .regex(/^[a-z0-9_]{1,512}$/, 'must have 1 to 512 lower-case letters, digits and underscores')

export const Template = z
  .object({
    id: idOf('tmpl'),
    object: z.literal('template'),
    name: z.string(),
    language: z.string(),
    status: z.enum(['pending', 'approved', 'rejected']),
    content: z.string().meta({ description: 'The text of the body, with its variables.' }),
    variables: z
      .array(z.string())
      .meta({ description: "The body's variables: `1`, `2` and so on, or their names.", example: ['1', '2'] }),
    components: z.unknown().optional(),
    category,
    chat_account: chatAccount,
    provider_template_id: z.string().nullable(),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Template' })

const components = z
  .array(z.looseObject({ type: z.string() }).meta({ id: 'TemplatePart' }))
  .min(1)
  .max(10)
  .meta({
    description:
      "As the platform has them: exactly one `BODY`, at most one `HEADER`, `FOOTER` and `BUTTONS`. A media header's sample is `example.header_handle`, or `example.header_url`: an https address that is fetched and uploaded here.",
  })

const CreateTemplate = z.object({
  name: templateName,
  language,
  category,
  components,
  parameter_format: z
    .enum(['positional', 'named', 'POSITIONAL', 'NAMED'])
    .optional()
    .meta({ description: '`positional` unless told otherwise.' }),
})

const EditTemplate = z.object({ components: components.optional(), category: category.optional() })

const byName = phoneParams.extend({ name: text(1, 512) })

// Without variables: the linters of API descriptions take their `example` for one of their own.
const exampleComponents = [{ type: 'BODY', text: 'Your order has shipped.' }]

const exampleTemplate = {
  id: 'tmpl_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  object: 'template',
  name: 'order_shipped',
  language: 'en_US',
  status: 'pending',
  content: 'Your order has shipped.',
  variables: [],
  components: exampleComponents,
  category: 'UTILITY',
  chat_account: { phone_number: '+15550001111' },
  provider_template_id: '594425479261596',
  created_at: '2026-03-01T12:00:00.000Z',
  updated_at: '2026-03-01T12:00:00.000Z',
}

export const listTemplates = rpc({
  subject: 'rpc.messaging.list-templates',
  summary: 'List the templates of a number',
  description:
    'Newest first. Templates belong to the business account: every number of it has the same. Paused ones are `pending`.',
  http: { method: 'GET', path: '/{phone_number_id}/templates', tag: 'Templates' },
  params: phoneParams,
  query: z.object({
    ...pageQuery,
    status: z.enum(['approved', 'pending', 'rejected', 'all']).default('approved'),
    language: anyLanguage.optional(),
  }),
  answer: Template,
  list: true,
  errors: ['resource_not_found'],
  example: { answer: exampleTemplate },
})

export const getTemplate = rpc({
  subject: 'rpc.messaging.get-template',
  summary: 'Get a template by its name',
  description: 'Without `language`, the newest of that name.',
  http: { method: 'GET', path: '/{phone_number_id}/templates/{name}', tag: 'Templates' },
  params: byName,
  query: z.object({ language: anyLanguage.optional() }),
  answer: Template,
  errors: ['resource_not_found'],
  example: { answer: exampleTemplate },
})

export const createTemplate = rpc({
  subject: 'rpc.messaging.create-template',
  summary: 'Submit a template for review',
  description:
    'The rules of names, variables, buttons and lengths are checked here; what the platform itself refuses is answered with its own words.',
  http: { method: 'POST', path: '/{phone_number_id}/templates', status: 201, tag: 'Templates', asksOutside: true },
  params: phoneParams,
  body: CreateTemplate,
  answer: Template,
  errors: [
    'resource_not_found',
    'template_already_exists',
    'account_not_connected',
    'media_upload_failed',
    'upstream_refused',
    'upstream_unavailable',
  ],
  example: {
    body: { name: 'order_shipped', language: 'en_US', category: 'UTILITY', components: exampleComponents },
    answer: exampleTemplate,
  },
})

export const editTemplate = rpc({
  subject: 'rpc.messaging.edit-template',
  summary: 'Edit a template and submit it for review again',
  description:
    'The components are replaced as a whole. `language` is needed when the name exists in several. A template whose review is pending cannot be edited.',
  http: { method: 'PATCH', path: '/{phone_number_id}/templates/{name}', tag: 'Templates', asksOutside: true },
  params: byName,
  query: z.object({ language: anyLanguage.optional() }),
  body: EditTemplate,
  answer: Template,
  errors: [
    'resource_not_found',
    'template_not_editable',
    'account_not_connected',
    'media_upload_failed',
    'upstream_refused',
    'upstream_unavailable',
  ],
  example: { body: { components: exampleComponents }, answer: exampleTemplate },
})

export const syncTemplates = rpc({
  subject: 'rpc.messaging.sync-templates',
  summary: 'Take over the templates that the platform has',
  description:
    'Reads all of them. `created` were not known here, `updated` were known otherwise, `synced` is how many the platform has. What it has no more becomes `rejected`. Reading more than some 1,000 may take longer than one answer (502): it goes on, and what it finds is taken over, as the list of templates shows then. The same call again waits for it, or reads anew.',
  http: { method: 'POST', path: '/{phone_number_id}/templates/sync', tag: 'Templates', asksOutside: true },
  params: phoneParams,
  body: z.object({}),
  answer: z.object({ created: z.int(), updated: z.int(), synced: z.int() }).meta({ id: 'TemplateSync' }),
  errors: ['resource_not_found', 'account_not_connected', 'upstream_refused', 'upstream_unavailable'],
  example: { body: {}, answer: { created: 2, updated: 1, synced: 14 } },
})
