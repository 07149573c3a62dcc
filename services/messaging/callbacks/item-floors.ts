import { first, type SeqFloor, seqFloor } from '@app/shared/database/seq-floor.ts'
import { mostRecent } from '@app/shared/work/most-recent.ts'

/** Where looks for the items of a lane begin (seq-floor.ts). */
export interface ItemFloors {
  /** The number from which on they are looked through. */
  from: (laneId: string) => number
  /** A look at these lanes took so long. */
  looked: (looks: Look[], tookMs: number) => void
  /** For a lane of which the last look found nothing, and left out a part: how soon all is looked through again, in ms. */
  restMs: (laneId: string) => number | null
}

interface Look {
  laneId: string
  from: number
  /** The first number that was seen, be it of an item that nobody takes; null: none was taken, or the look failed. */
  firstSeq: number | null
}

interface Lane {
  floor: SeqFloor
  /** The last look began further on, and found nothing. */
  isUnsure: boolean
}

export function createItemFloors(now: () => number = () => performance.now()): ItemFloors {
  const lanes = mostRecent<string, Lane>(20_000)
  return {
    from: (laneId) => lanes.get(laneId)?.floor.from() ?? first,
    restMs(laneId) {
      const lane = lanes.get(laneId)
      return lane?.isUnsure === true ? lane.floor.restMs() : null
    },
    looked(looks, tookMs) {
      for (const { laneId, from, firstSeq } of looks) {
        const floor = lanes.get(laneId)?.floor ?? seqFloor(now)
        floor.looked(from, tookMs)
        if (firstSeq !== null) floor.settledBelow(firstSeq)
        if (from === first && floor.restMs() === 0) lanes.delete(laneId)
        else lanes.set(laneId, { floor, isUnsure: from !== first && firstSeq === null })
      }
    },
  }
}
