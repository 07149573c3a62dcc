/** A template's status, as our API tells it. */
export type TemplateStatus = 'pending' | 'approved' | 'rejected'

/** The platform's word for one that it does not list any more is ours. */
export const vanished = 'VANISHED'

/** Ours, too: the platform refused a send of it as not there, or not approved. The status stays, and the next send asks. */
export const doubted = 'DOUBTED'

const byWord: ReadonlyMap<string, TemplateStatus> = new Map([
  ['APPROVED', 'approved'],
  ['REINSTATED', 'approved'],
  ['UNARCHIVED', 'approved'],
  ['PENDING', 'pending'],
  ['IN_APPEAL', 'pending'],
  ['PAUSED', 'pending'],
  ['REJECTED', 'rejected'],
  ['DISABLED', 'rejected'],
  ['LIMIT_EXCEEDED', 'rejected'],
  ['PENDING_DELETION', 'rejected'],
  ['DELETED', 'rejected'],
  ['ARCHIVED', 'rejected'],
  [vanished, 'rejected'],
])

/** Words that settle the status. */
export const settlingWords: readonly string[] = [...byWord.keys()]

/** What the platform's word means; null for one that leaves the status as it is (FLAGGED, LOCKED, and words that we do not know). */
export const statusOf = (word: string): TemplateStatus | null => byWord.get(word) ?? null

/** The status of a template that is told of for the first time: a flagged one is still sent. */
export const firstStatusOf = (word: string): TemplateStatus =>
  statusOf(word) ?? (word === 'FLAGGED' ? 'approved' : 'pending')

/** Words of templates that are no more; their names may come back. */
export const goneWords: readonly string[] = [vanished, 'DELETED', 'PENDING_DELETION']

/** Words in which the platform takes an edit. */
export const editableWords: readonly string[] = [
  'APPROVED',
  'REINSTATED',
  'UNARCHIVED',
  'REJECTED',
  'PAUSED',
  'FLAGGED',
  doubted,
]
