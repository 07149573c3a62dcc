import type { Law } from '../law.ts'

const goneOut = new Set(['sent', 'delivered', 'read'])

/** Every accepted send ends in exactly one call that the platform took, or in a failure that says so; nothing else goes out. */
export const oneEnding: Law = ({ accepted, upstream, endings }) => {
  const calls = new Map<string, number>()
  for (const { messageId } of upstream) calls.set(messageId, (calls.get(messageId) ?? 0) + 1)
  const known = new Set(accepted.map(({ id }) => id))
  const strangers = [...calls.keys()].filter((id) => !known.has(id)).map((id) => `${id} went out, and nobody sent it`)
  const doubled = Map.groupBy(accepted, ({ id }) => id)
  const shared = [...doubled].filter(([, all]) => all.length > 1).map(([id]) => `${id} answered two sends`)
  const broken = accepted.flatMap(({ id }) => {
    const times = calls.get(id) ?? 0
    const ending = endings.get(id)
    const shown = ending ? `${ending.status}${ending.code ? ` (${ending.code})` : ''}` : 'unreadable'
    if (times > 1) return [`${id} went out ${times} times`]
    if (times === 1) return goneOut.has(ending?.status ?? '') ? [] : [`${id} went out and ended ${shown}`]
    return ending?.status === 'failed' && ending.code !== null ? [] : [`${id} never went out and ended ${shown}`]
  })
  return [...strangers, ...shared, ...broken]
}
