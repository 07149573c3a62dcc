import type { Handler } from '@app/shared/api/contract.ts'
import type { editTemplate as contract } from '@app/shared/contracts/templates.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { invalidField, notFound, Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { UpstreamRefusal } from '../upstream/ask-upstream.ts'
import { type Asking, readTemplates, resubmitTemplate } from '../upstream/templates.ts'
import { askAbout } from './ask-about.ts'
import { checkComponents, type Component } from './check-components.ts'
import { editableWords } from './statuses.ts'
import { clockSlackMs, storeTemplates } from './store-templates.ts'
import {
  deadlineOf,
  isShown,
  openAccount,
  type TemplateAccount,
  templateColumns,
  type TemplateRow,
  toTemplate,
} from './templates.ts'
import { uploadHeader } from './upload-header.ts'

type KnownRow = TemplateRow & { statusAt: string }

/** The platform first: what it refuses is not changed here either. */
export const editTemplate: Handler<App, typeof contract> = async (app, { params, query, body }, caller) => {
  const { organizationId } = caller
  const account = await openAccount(app, { organizationId, phoneNumberId: params.phone_number_id })
  const row = await findOne(app.sql, account, params.name, query.language)
  const { components, category } = body
  if (components === undefined && category === undefined) return toTemplate(row, account)
  if (row.providerTemplateId === null || !editableWords.includes(row.upstreamStatus))
    throw new Problem('template_not_editable', {
      message: `A template that is ${row.upstreamStatus} cannot be edited.`,
    })
  if (components) checkComponents({ category: category ?? row.category, format: row.parameterFormat, components })

  const asking = { ...account, deadline: deadlineOf(caller) }
  const { providerTemplateId } = row
  const send = async () => {
    const uploaded = components && (await uploadHeader(app, asking, components))
    const change = { ...(uploaded && { components: uploaded }), ...(category !== undefined && { category }) }
    await resubmitTemplate(app.upstream, asking, providerTemplateId, change).catch(async (err: unknown) => {
      if (mayHaveChanged(err)) await readAgain(app, asking, row.name)
      throw err
    })
    return uploaded
  }
  const uploaded = await askAbout(app, asking, send, components ?? [])
  return toTemplate(await storeEdit(app.sql, account, row, { components: uploaded, category }), account)
}

/** A lost answer, or a refusal of what was asked: the template may be other than it is known here. */
const mayHaveChanged = (err: unknown) => !(err instanceof UpstreamRefusal && (err.isPassing || err.isAboutToken))

/** What cannot be read now, a sync or the next edit brings. */
async function readAgain({ sql, upstream, log }: App, account: TemplateAccount & Asking, name: string) {
  try {
    const found = await readTemplates(upstream, account, name)
    await sql.begin((tx) => storeTemplates(tx, account, found))
  } catch (err) {
    log.warn({ err, organization: account.organizationId, name }, 'a template cannot be read after its edit')
  }
}

async function findOne(sql: Sql, account: TemplateAccount, name: string, language: string | undefined) {
  const [row, another] = await sql<KnownRow[]>`
    select ${sql(templateColumns)}, status_at::text as status_at from templates
    where organization_id = ${account.organizationId} and business_account_id = ${account.businessAccountId}
      and name = ${name} ${language === undefined ? sql`` : sql`and language = ${language}`} and ${isShown(sql)}
    limit 2
  `
  if (!row) throw notFound()
  if (another) throw invalidField('language', 'language is needed: the template exists in several.')
  return row
}

interface Edit {
  components: Component[] | undefined
  category: string | undefined
}

/**
 * The review may be over before we come to write, and the platform may have chosen another category for the new texts: what a callback
 * has told of these since the row was read stays. What was not edited is neither written nor taken for newer than it is.
 */
async function storeEdit(sql: Sql, { organizationId, askedAt }: TemplateAccount, row: KnownRow, edit: Edit) {
  // A refused send changes the status, but has no time of the platform.
  const isUntold = sql`(status_at = ${row.statusAt}::text::timestamptz and upstream_status = ${row.upstreamStatus})`
  const asked = sql`${askedAt}::text::timestamptz`
  const old = sql`${asked} - ${clockSlackMs} * interval '1 ms'`
  const components = edit.components === undefined ? null : JSON.stringify(edit.components)
  const category = edit.category ?? null
  const [edited] = await sql<TemplateRow[]>`
    update templates set components = coalesce(${components}::text::jsonb, components),
      category = case when category_at > ${asked} then category else coalesce(${category}, category) end,
      status = case when ${isUntold} then 'pending' else status end,
      upstream_status = case when ${isUntold} then 'PENDING' else upstream_status end,
      known_at = clock_timestamp(), status_at = greatest(status_at, ${old}),
      category_at = case when ${category}::text is null then category_at else greatest(category_at, ${old}) end,
      components_at = case when ${components}::text is null then components_at else greatest(components_at, ${old}) end,
      updated_at = now()
    where organization_id = ${organizationId} and id = ${row.id}
    returning ${sql(templateColumns)}
  `
  if (!edited) throw notFound()
  return edited
}
