import { restAfter } from '@app/shared/database/rest-after.ts'
import { LRUCache } from 'lru-cache'

/** Where looks for what is due in a lane begin. */
export interface DueFloors {
  /** The time from which on deliveries are looked through, in seconds since 1970 by the database's clock; null: all are. */
  from: (laneId: string) => number | null
  /** How soon all are looked through again, in ms. */
  restMs: (laneId: string) => number
  /** A look at these lanes took so long. */
  looked: (lanes: Looked[], tookMs: number) => void
}

interface Looked {
  laneId: string
  from: number | null
  /** Before it nothing was open, and what is new will not be due; null: it was cancelled, or failed, and what was known before holds. */
  floor: number | null
}

/**
 * When looks become dear (rest-after.ts), most of them begin where nothing was open before at the last look at all. What comes to be due
 * earlier than that after all waits for the next one: what is committed ten seconds after its time, or written by a clock that was put back.
 */
export function createDueFloors(now: () => number = () => performance.now()): DueFloors {
  const floors = new LRUCache<string, { floor: number; allAt: number }>({ max: 20_000 })
  const restMs = (laneId: string) => Math.max(0, (floors.get(laneId)?.allAt ?? 0) - now())
  return {
    from: (laneId) => (restMs(laneId) > 0 ? (floors.get(laneId)?.floor ?? null) : null),
    restMs,
    looked(lanes, tookMs) {
      const rest = restAfter(tookMs)
      for (const { laneId, from, floor: told } of lanes) {
        const floor = told ?? floors.get(laneId)?.floor
        if (from !== null || floor === undefined) continue
        if (rest > 0) floors.set(laneId, { floor, allAt: now() + rest })
        else floors.delete(laneId)
      }
    },
  }
}
