import type { App } from '../app.ts'
import { badParameter } from '../graph/graph-error.ts'
import type { Query } from '../graph/nodes.ts'
import { showTemplate } from './read-template.ts'
import type { Template } from './template.ts'

const pageSize = { byDefault: 25, most: 1_000 }

/** `GET /{v}/{business_account_id}/message_templates`: newest first; `next` stands there while there is more. */
export function listTemplates(app: App, businessAccountId: string, query: Query, path: string) {
  const limit = limitOf(query)
  const matching = app.templates.ofAccount(businessAccountId).filter((template) => matches(template, query))
  const start = startOf(matching, query, limit)
  const page = matching.slice(start, start + limit)
  const data = page.map((template) => showTemplate(app, template, query['fields']))
  const [first, last] = [page[0], page.at(-1)]
  if (!first || !last) return { data }

  const link = (side: 'before' | 'after', template: Template) => {
    const { before: _before, after: _after, ...rest } = query
    return `${app.url()}${path}?${new URLSearchParams(definedOf({ ...rest, [side]: cursorOf(template) })).toString()}`
  }
  return {
    data,
    paging: {
      cursors: { before: cursorOf(first), after: cursorOf(last) },
      ...(start > 0 && { previous: link('before', first) }),
      ...(start + limit < matching.length && { next: link('after', last) }),
    },
  }
}

function limitOf({ limit }: Query) {
  if (limit === undefined) return pageSize.byDefault
  if (!/^[1-9]\d*$/.test(limit)) throw badParameter('Param limit must be a positive integer.')
  return Math.min(Number(limit), pageSize.most)
}

/** `name` finds parts of names too, so that a client must look twice. */
function matches(
  template: Template,
  { name, language, status, category, name_or_content: text, quality_score: quality }: Query,
) {
  return (
    (name === undefined || template.name.includes(name)) &&
    (text === undefined || template.name.includes(text) || JSON.stringify(template.components).includes(text)) &&
    inSome(template.language, language) &&
    inSome(template.quality, quality) &&
    inSome(template.status, status) &&
    inSome(template.category, category)
  )
}

/** One word, or several: after commas, or in a JSON list, as clients write them. */
const inSome = (value: string, list: string | undefined) =>
  list === undefined ||
  list
    .replaceAll(/["[\]\s]/g, '')
    .toUpperCase()
    .split(',')
    .includes(value.toUpperCase())

function startOf(matching: Template[], { before, after }: Query, limit: number) {
  if (after !== undefined) return countUntil(matching, sequenceOf(after) - 1)
  if (before !== undefined) return Math.max(0, countUntil(matching, sequenceOf(before)) - limit)
  return 0
}

/** How many are newer than the place. */
const countUntil = (matching: Template[], sequence: number) =>
  matching.filter((template) => template.sequence > sequence).length

/** A place in the order, so that it stays one when its template is deleted. */
const cursorOf = ({ sequence }: Template) => Buffer.from(`at:${sequence}`).toString('base64url')

function sequenceOf(cursor: string) {
  const [, sequence] = /^at:(\d+)$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (sequence === undefined) throw badParameter('Invalid cursors values')
  return Number(sequence)
}

const definedOf = (query: Query) =>
  Object.entries(query).flatMap(([key, value]): Array<[string, string]> => (value === undefined ? [] : [[key, value]]))
