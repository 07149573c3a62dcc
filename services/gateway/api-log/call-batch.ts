import { randomUUID } from 'node:crypto'
import type { Input } from '@app/shared/api/contract.ts'
import type { recordCalls } from '@app/shared/contracts/platform.ts'
import type { Exchange } from '../exchange/exchange.ts'

/** A call that was answered, with how it was written into the log. */
export interface Call {
  exchange: Pick<Exchange, 'identity' | 'ip' | 'requestId'>
  /** Epoch milliseconds. */
  beganAt: number
  durationMs: number
  status: number
  method: string
  /** Without spaces and line breaks. */
  path: string
  /** Without line breaks; '' for none. */
  problem: string
}

type Body = Input<typeof recordCalls>['body']

/** A batch as it is sent, under the same name each time. */
export interface Batch {
  body: Body
  calls: number
}

/** Calls that wait to be sent. */
export interface WaitingCalls {
  readonly size: number
  add: (call: Call) => void
  /** The oldest ones; null when none waits. */
  take: () => Batch | null
}

export function createWaitingCalls(mostInBatch: number): WaitingCalls {
  /** Full ones but for the last. */
  const batches: Filling[] = []
  let size = 0

  function filling(beganAt: number) {
    const last = batches.at(-1)
    if (last && last.size < mostInBatch) return last
    const batch = openBatch(beganAt)
    batches.push(batch)
    return batch
  }

  return {
    get size() {
      return size
    },
    add(call) {
      filling(call.beganAt).add(call)
      size++
    },
    take() {
      const batch = batches.shift()
      if (!batch) return null
      size -= batch.size
      return { body: batch.body(), calls: batch.size }
    },
  }
}

const linesOfPage = 16

interface Filling {
  readonly size: number
  add: (call: Call) => void
  body: () => Body
}

/**
 * Each call becomes its line at once, and who asked stands in the batch once: a flat text of some 60 bytes is cheaper to keep than
 * an object, and than to say the same key and address in every line.
 */
function openBatch(beganAt: number): Filling {
  const batch = randomUUID()
  const callers: Body['callers'] = []
  /** By address, then by key. */
  const places = new Map<string, Map<string | null, number>>()
  /** Whole pages of lines: as a line is made it is many small pieces, all of which would live until the batch is sent. */
  const pages: string[] = []
  let lines: string[] = []
  let size = 0
  let first = ''
  let last = ''

  function placeOf({ identity, ip }: Call['exchange']) {
    const { organizationId = null, keyId = null } = identity?.value ?? {}
    let there = places.get(ip)
    if (!there) places.set(ip, (there = new Map()))
    let place = there.get(keyId)
    if (place === undefined) {
      place = callers.push({ organization_id: organizationId, key_id: keyId, ip })
      there.set(keyId, place)
    }
    return place
  }

  return {
    get size() {
      return size
    },
    add({ exchange, beganAt: at, durationMs, status, method, path, problem }) {
      const id = exchange.requestId
      if (first === '' || id < first) first = id
      if (id > last) last = id
      const took = Math.round(durationMs * 1_000)
      lines.push(`${at - beganAt} ${took} ${placeOf(exchange)} ${id} ${status} ${method} ${path} ${problem}`)
      size++
      if (lines.length < linesOfPage) return
      pages.push(lines.join('\n'))
      lines = []
    },
    body: () => ({
      batch,
      first_request: first,
      last_request: last,
      began: new Date(beganAt).toISOString(),
      callers,
      calls: [...pages, ...lines].join('\n'),
    }),
  }
}
