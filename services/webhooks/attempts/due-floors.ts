import { type DueFloor, dueFloor } from '@app/shared/mailbox/due-floor.ts'
import { mostRecent } from '@app/shared/work/most-recent.ts'

/** Where looks for what is due in a lane begin (due-floor.ts). */
export interface DueFloors {
  from: (laneId: string) => number | null
  restMs: (laneId: string) => number
  /** A look at these lanes took so long. */
  looked: (lanes: Looked[], tookMs: number) => void
}

interface Looked {
  laneId: string
  from: number | null
  floor: number | null
}

export function createDueFloors(now: () => number = () => performance.now()): DueFloors {
  const floors = mostRecent<string, DueFloor>(20_000)
  return {
    from: (laneId) => floors.get(laneId)?.from() ?? null,
    restMs: (laneId) => floors.get(laneId)?.restMs() ?? 0,
    looked(lanes, tookMs) {
      for (const { laneId, ...look } of lanes) {
        const floor = floors.get(laneId) ?? dueFloor(now)
        floor.looked(look, tookMs)
        if (floor.known() === null) floors.delete(laneId)
        else floors.set(laneId, floor)
      }
    },
  }
}
