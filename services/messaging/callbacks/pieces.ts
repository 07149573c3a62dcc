import { batchSize } from '@app/shared/work/batched.ts'

type Value = Record<string, unknown>

/** Echoes wait one by one (a revoke waits for its message); the rest goes in pieces that are small in memory. */
const mostEntries = 500
const mostMessages = 200
/** As JSON, unless one alone is longer. */
const mostChars = 64 * 1024

/** A change's value in pieces that are worked through by themselves; their order does not matter. */
export function piecesOf(field: string, value: Value): Value[] {
  switch (field) {
    case 'smb_message_echoes':
      return listPieces(value, 'message_echoes', 1)
    case 'smb_app_state_sync':
      return listPieces(value, 'state_sync', mostEntries)
    case 'user_preferences':
      return listPieces(value, 'user_preferences', mostEntries)
    case 'history':
      return historyPieces(value)
    default:
      return [value]
  }
}

function listPieces(value: Value, key: string, most: number): Value[] {
  const list = value[key]
  return Array.isArray(list) ? slicesOf(list, most).map((slice) => ({ ...value, [key]: slice })) : [value]
}

/**
 * Old messages come in chunks of threads, up to 3 MB a callback: a piece is some messages of one thread. Their files come in
 * lists beside them, of the customers' messages and of the business's own. A value that has none of these stays whole.
 */
function historyPieces(value: Value): Value[] {
  const { history, messages, message_echoes: echoes, ...around } = value
  if ((history ?? messages ?? echoes ?? null) === null) return [value]
  const chunks: unknown[] = [history ?? []].flat()
  const filePieces = (key: string, list: unknown) =>
    (list ?? null) === null ? [] : listPieces({ ...around, [key]: list }, key, mostMessages)
  return [
    ...chunks.flatMap(chunkPieces).map((piece) => ({ ...around, history: [piece] })),
    ...filePieces('messages', messages),
    ...filePieces('message_echoes', echoes),
  ]
}

/** What has another shape is a piece of its own, which is found unfit by itself. */
function chunkPieces(part: unknown): unknown[] {
  if (!isValue(part)) return [part]
  const { threads, ...chunk } = part
  if (!Array.isArray(threads)) return [part]
  const pieces = (threads as unknown[]).flatMap((one) =>
    isValue(one) ? listPieces(one, 'messages', mostMessages) : [one],
  )
  return pieces.length === 0 ? [chunk] : pieces.map((thread) => ({ ...chunk, threads: [thread] }))
}

const isValue = (value: unknown): value is Value => typeof value === 'object' && value !== null && !Array.isArray(value)

function slicesOf(list: unknown[], most: number): unknown[][] {
  const slices: unknown[][] = []
  let rest = list
  while (rest.length > 0) {
    const count = batchSize(rest, { rows: most, bytes: mostChars, sizeOf: charsOf })
    slices.push(rest.slice(0, count))
    rest = rest.slice(count)
  }
  return slices
}

const charsOf = (one: unknown) => JSON.stringify(one).length
