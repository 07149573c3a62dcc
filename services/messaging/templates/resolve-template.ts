import type { Caller } from '@app/shared/api/contract.ts'
import { notFound, Problem } from '@app/shared/api/problem.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { unsealToken } from '@app/shared/secrets/account-token.ts'
import type { Core } from '../app.ts'
import type { OwnNumber } from '../senders/own-number.ts'
import { readTemplates } from '../upstream/templates.ts'
import { askAbout } from './ask-about.ts'
import type { Place, Standing } from './known-templates.ts'
import { fit, type SentComponent } from './parameters.ts'
import { doubted, goneWords, vanished } from './statuses.ts'
import { storeTemplates } from './store-templates.ts'
import { deadlineOf, findAccount, type TemplateAccount } from './templates.ts'

/** The template block of a send. */
export interface TemplateToSend {
  name: string
  language: string | { code: string }
  components?: readonly SentComponent[] | undefined
}

export interface ResolvedTemplate {
  category: Standing['category']
  language: string
  /** The body's text with its values. */
  content: string
}

/**
 * Holds a template send against the template as it stands now. The platform is asked first where the template is not known here, where
 * the platform did not find it for an earlier send, and where it is not approved and nothing was heard of it for hours: the callback at
 * the end of a pause or a review may have been lost.
 * @throws `template_not_found`, `template_not_approved`, `template_paused`, `template_disabled`,
 * `template_param_count_mismatch`, `template_param_format_mismatch`, `invalid_field_value`, each with its `param`;
 * `rate_limit_exceeded` when the platform was asked about too many of late.
 */
export async function resolveTemplate(
  core: Core,
  sender: OwnNumber,
  { name, language, components = [] }: TemplateToSend,
  caller: Pick<Caller, 'deadline'>,
): Promise<ResolvedTemplate> {
  const code = typeof language === 'string' ? language : language.code
  const { organizationId, phoneNumberId } = sender
  const place = { organizationId, phoneNumberId, name, language: code }
  let standing = await core.templates.find(place)
  if (isToBeAskedAbout(standing)) {
    await lookUp(core, standing, place, caller)
    standing = await core.templates.find(place)
  }
  const id = isKnown(standing) ? standing.id : null
  if (id === null) throw new Problem('template_not_found', { param: 'template.name' })
  refuseUnsendable(standing)
  const shape = await core.templates.shapeOf(organizationId, id, standing.knownAt)
  return { category: standing.category, language: code, content: fit(shape, components) }
}

const isKnown = ({ id, upstreamStatus }: Standing) => id !== null && !goneWords.includes(upstreamStatus)

const isToBeAskedAbout = (standing: Standing) =>
  !isKnown(standing) || standing.upstreamStatus === doubted || (standing.isOld && standing.status !== 'approved')

function refuseUnsendable({ status, upstreamStatus }: Standing) {
  const param = 'template.name'
  if (upstreamStatus === 'PAUSED') throw new Problem('template_paused', { param })
  if (upstreamStatus === 'DISABLED') throw new Problem('template_disabled', { param })
  if (status !== 'approved') throw new Problem('template_not_approved', { param })
}

/** All languages of the name; what the platform has of it is known from then on. */
async function lookUp(
  core: Core,
  standing: Standing,
  { name, language: code, ...sender }: Place,
  caller: Pick<Caller, 'deadline'>,
): Promise<void> {
  const { businessAccountId } = standing
  if (businessAccountId === null) throw notFound()
  await core.templates.spending.lookUp(`${sender.organizationId} ${businessAccountId}`, name, async () => {
    const account = await findAccount(core.sql, sender)
    const token = unsealToken(core.sealKeys, standing.sealedToken, standing.accountId)
    const asking = { businessAccountId, token, deadline: deadlineOf(caller) }
    const found = await askAbout(core, { ...account, deadline: asking.deadline }, () =>
      readTemplates(core.upstream, asking, name),
    )
    const asked = { ...account, businessAccountId }
    await core.sql.begin((tx) => storeTemplates(tx, asked, found))
    const isThere = found.some(({ language }) => language === code)
    if (isKnown(standing)) await hearOf(core.sql, standing, asked, isThere)
  })
}

/**
 * `storeTemplates` writes neither a template that is unchanged nor one that the platform has no more: noted here, so that the next
 * send does not ask again.
 */
const hearOf = (sql: Sql, { id }: Standing, { organizationId, askedAt }: TemplateAccount, isThere: boolean) => sql`
  update templates set known_at = ${askedAt}::text::timestamptz
    ${isThere ? sql`` : sql`, status = 'rejected', upstream_status = ${vanished}, updated_at = now()`}
  where organization_id = ${organizationId} and id = ${id} and known_at < ${askedAt}::text::timestamptz
`
