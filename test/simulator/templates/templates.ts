import { randomId } from '../numbers/numbers.ts'
import type { Deletion, Template } from './template.ts'

const dayMs = 24 * 3_600_000
const hourMs = 3_600_000
/** An approved name is held for 30 days, another for minutes. */
const heldMs = { approved: 30 * dayMs, other: 5 * 60_000 }

type Key = Pick<Template, 'businessAccountId' | 'name' | 'language'>
type NewTemplate = Pick<
  Template,
  'businessAccountId' | 'name' | 'language' | 'category' | 'parameterFormat' | 'components' | 'status'
>

const keyOf = ({ businessAccountId, name, language }: Key) => `${businessAccountId} ${name} ${language}`

export type Templates = ReturnType<typeof createTemplates>

/** The templates of all business accounts, and the names that are held after a deletion. */
export function createTemplates(known: { templates: Template[]; deletions: Deletion[] }) {
  const byId = new Map(known.templates.map((template) => [template.id, template]))
  let deletions = known.deletions
  let sequence = known.templates.reduce((highest, template) => Math.max(highest, template.sequence), 0)
  const creations: Array<{ businessAccountId: string; at: number }> = []

  const byKey = new Map(known.templates.map((template) => [keyOf(template), template.id]))

  function put(template: Template) {
    byId.set(template.id, template)
    byKey.set(keyOf(template), template.id)
    return template
  }

  function forget(template: Template) {
    byId.delete(template.id)
    byKey.delete(keyOf(template))
  }

  return {
    put,
    add: (template: NewTemplate) =>
      put({
        id: randomId(),
        sequence: ++sequence,
        rejectedReason: 'NONE',
        quality: 'UNKNOWN',
        editedAt: [],
        ...template,
      }),
    find: (id: string) => byId.get(id),
    /** Each template send asks this. */
    of: (key: Key) => byId.get(byKey.get(keyOf(key)) ?? ''),
    /** Newest first. */
    ofAccount: (businessAccountId: string) =>
      [...byId.values()].filter((template) => template.businessAccountId === businessAccountId).toReversed(),
    all: () => [...byId.values()],
    forget,
    /** Takes it away and holds its name. */
    remove: (template: Template, now = Date.now()) => {
      forget(template)
      const { businessAccountId, name, language, status } = template
      const until = now + (status === 'APPROVED' ? heldMs.approved : heldMs.other)
      deletions.push({ businessAccountId, name, language, until })
    },
    isHeld: (key: Key, now = Date.now()) => {
      deletions = deletions.filter(({ until }) => until > now)
      return deletions.some((deletion) => keyOf(deletion) === keyOf(key))
    },
    deletions: () => deletions,
    /** Counts a creation; how many an account made within an hour, this one among them. */
    countCreation: (businessAccountId: string, now = Date.now()) => {
      creations.push({ businessAccountId, at: now })
      while (creations[0] && creations[0].at <= now - hourMs) creations.shift()
      return creations.filter((creation) => creation.businessAccountId === businessAccountId).length
    },
  }
}
