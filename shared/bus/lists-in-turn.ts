import type { Caller } from '../api/contract.ts'
import { tooMany } from './in-turn.ts'

/** Of an organization's lists at a time: what they come to is that of the last ones. */
const most = { lists: 64, bytes: 1024 * 1024 }
/** Of one of which nothing is known yet. */
const supposedBytes = most.bytes / 8

interface Line {
  running: number
  /** Of an answer: the newest, or somewhat less than a larger one before. */
  bytes: number
  waiting: (() => void)[]
}

/** Makes a list in its organization's turn. Throws `service_unavailable` when that comes after the caller's deadline. */
export type ListsInTurn = <T extends { body: Uint8Array }>(caller: Caller, make: () => Promise<T>) => Promise<T>

/**
 * The larger an organization's pages are, the fewer are made at a time, down to one: all are made by one event loop, where whatever
 * is asked by others waits behind them. Measured with pages of 1.5 MB, which 200 connections of one organization asked for: another
 * one's lists and changes took 4 to 10 s, or were a 503. Many small ones at a time cost each of them less.
 */
export function createListsInTurn(): ListsInTurn {
  const lines = new Map<string, Line>()
  return async ({ organizationId, deadline }, make) => {
    const line = lines.get(organizationId) ?? { running: 0, bytes: supposedBytes, waiting: [] }
    lines.set(organizationId, line)
    if (mayBegin(line)) line.running++
    else await new Promise<void>((begin) => line.waiting.push(begin))
    try {
      if (deadline <= performance.now()) throw tooMany('lists')
      const made = await make()
      line.bytes = Math.max(made.body.length, (line.bytes * 7) / 8)
      return made
    } finally {
      line.running--
      while (line.waiting.length > 0 && mayBegin(line)) {
        line.running++
        line.waiting.shift()?.()
      }
      if (line.running === 0) lines.delete(organizationId)
    }
  }
}

const mayBegin = ({ running, bytes }: Line) =>
  running < Math.max(1, Math.min(most.lists, Math.floor(most.bytes / bytes)))
