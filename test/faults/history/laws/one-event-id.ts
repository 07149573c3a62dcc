import type { Law } from '../law.ts'

/** An event has one id, and what has that id is always the same, to everybody and in every repeat. */
export const oneEventId: Law = ({ deliveries, expected }) => {
  const byId = Map.groupBy(deliveries, ({ eventId }) => eventId)
  const changed = [...byId]
    .filter(([, all]) => new Set(all.map(({ type, raw }) => `${type} ${raw}`)).size > 1)
    .map(([id]) => `${id} came with different contents`)
  const byType = Map.groupBy(deliveries, ({ type }) => type)
  const renamed = expected.flatMap(({ type, word }) => {
    if (word === undefined) return []
    const ids = new Set((byType.get(type) ?? []).filter(({ raw }) => raw.includes(word)).map(({ eventId }) => eventId))
    return ids.size > 1 ? [`${type} ${word} came as ${[...ids].join(' and ')}`] : []
  })
  return [...changed, ...renamed]
}
