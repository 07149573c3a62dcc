import { Problem } from '@app/shared/api/problem.ts'
import type { Upstream } from '@app/shared/outside/upstream.ts'
import { z } from 'zod'
import { askUpstream } from './ask-upstream.ts'

/** A business account as the platform is asked about it, until the deadline (performance.now). */
export interface Asking {
  businessAccountId: string
  token: string
  deadline: number
  signal?: AbortSignal
}

/** Ids are texts; some answers have them as numbers. */
const id = z.union([z.string().min(1), z.number().transform(String)])

/** A template as the platform tells of it, in its own words. */
export const UpstreamTemplate = z.object({
  id,
  name: z.string(),
  language: z.string(),
  status: z.string(),
  category: z.string().catch(''),
  parameter_format: z.string().nullish().catch(null),
  components: z.array(z.looseObject({ type: z.string() })).catch([]),
  rejected_reason: z.string().nullish().catch(null),
  quality_score: z.object({ score: z.string() }).nullish().catch(null),
})
export type UpstreamTemplate = z.output<typeof UpstreamTemplate>

/** The status of a template that the platform lists in a form we cannot read: it exists, and that is all that is known. */
export const unread = 'UNREAD'

const OddTemplate = z
  .object({ name: z.string(), language: z.string() })
  .transform(({ name, language }): UpstreamTemplate => ({
    id: '',
    name,
    language,
    status: unread,
    category: '',
    components: [],
    parameter_format: null,
    rejected_reason: null,
  }))

const Page = z.object({
  // An odd one stops no other.
  data: z.array(z.union([UpstreamTemplate, OddTemplate]).nullable().catch(null)),
  paging: z
    .object({ cursors: z.object({ after: z.string().nullish() }).nullish(), next: z.string().nullish() })
    .nullish(),
})

const fields = 'id,name,language,status,category,parameter_format,components,rejected_reason,quality_score'
/** Templates of a page: under our limit of an answer (1 MiB), at up to 20 KB each. */
const pageSize = 50
/** More than an account can have (6,000 names, in some languages each). */
const maxPages = 1_000

/** All templates of the business account, or those of one name, page by page until there is no next one. */
export async function readTemplates(upstream: Upstream, asking: Asking, name?: string): Promise<UpstreamTemplate[]> {
  const { businessAccountId, token, deadline, signal } = asking
  const found: UpstreamTemplate[] = []
  const query = new URLSearchParams({ fields, limit: String(pageSize), ...(name !== undefined && { name }) })
  for (let n = 0; n < maxPages; n++) {
    const path = `/${businessAccountId}/message_templates?${query.toString()}`
    const { data, paging } = await askUpstream(upstream, { method: 'GET', path, token, signal, answer: Page }, deadline)
    found.push(...data.filter((one) => one !== null))
    if (!paging?.next) return name === undefined ? found : found.filter((one) => one.name === name)
    query.set('after', paging.cursors?.after || afterIn(paging.next))
  }
  throw new Problem('upstream_unavailable', { cause: new Error(`more than ${maxPages} pages of templates`) })
}

/** The bearer goes to the platform's own address alone, so of the next page's only the cursor is taken. */
function afterIn(next: string) {
  const after = URL.parse(next)?.searchParams.get('after')
  if (!after) throw new Problem('upstream_unavailable', { cause: new Error('a next page without a cursor') })
  return after
}

export interface Submission {
  name: string
  language: string
  category: string
  parameter_format: string
  components: unknown
}

const Created = z.object({ id, status: z.string(), category: z.string().optional() })
export type Created = z.output<typeof Created>

export const submitTemplate = (
  upstream: Upstream,
  { businessAccountId, token, deadline }: Asking,
  json: Submission,
): Promise<Created> =>
  askUpstream(
    upstream,
    { method: 'POST', path: `/${businessAccountId}/message_templates`, token, json, answer: Created },
    deadline,
  )

export async function resubmitTemplate(
  upstream: Upstream,
  { token, deadline }: Pick<Asking, 'token' | 'deadline'>,
  templateId: string,
  json: { components?: unknown; category?: string },
): Promise<void> {
  const answer = z.object({ success: z.literal(true) })
  await askUpstream(upstream, { method: 'POST', path: `/${templateId}`, token, json, answer }, deadline)
}
