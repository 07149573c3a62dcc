import { mostRecent } from '@app/shared/work/most-recent.ts'

/** An answer, and for how long it may be believed. */
export interface Known<V> {
  value: V
  /** When its question was SENT (performance.now): what changed after that, it does not know. */
  sentAt: number
  /** How long after `sentAt` it counts. */
  keptMs: number
}

/** `before` is the last answer that is remembered, however old. */
type Ask<V> = (before: V | undefined) => Promise<Pick<Known<V>, 'value' | 'keptMs'>>

export interface LookUp<V> {
  /** The answer for a key, asked for anew when what is known is too old for a request that is here now. */
  get: (key: string, ask: Ask<V>) => Known<V> | Promise<Known<V>>
}

/** Whether an answer is still good at this moment, by a clock that goes on while the process is frozen. */
export const isFresh = ({ sentAt, keptMs }: Known<unknown>): boolean => performance.now() - sentAt < keptMs

/** Remembers answers for a short while, and asks each question once at a time. `max` answers are kept. */
export function createLookUp<V>({ max }: { max: number }): LookUp<V> {
  const answers = mostRecent<string, Known<V>>(max)
  const asking = new Map<string, Promise<void>>()

  function start(key: string, ask: Ask<V>) {
    const sentAt = performance.now()
    const question = ask(answers.peek(key)?.value)
      .then((answer) => void answers.set(key, { ...answer, sentAt }))
      .finally(() => asking.delete(key))
    asking.set(key, question)
    return question
  }

  /** Joins the question that is out. Its answer may be older than this request allows; then its own question follows. */
  async function find(key: string, ask: Ask<V>, since: number) {
    for (;;) {
      await (asking.get(key) ?? start(key, ask))
      const known = answers.get(key)
      if (known && since - known.sentAt < known.keptMs) return known
    }
  }

  return {
    get(key, ask) {
      const known = answers.get(key)
      return known && isFresh(known) ? known : find(key, ask, performance.now())
    },
  }
}
