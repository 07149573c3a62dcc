import type { Lane } from '@app/shared/mailbox/lanes.ts'

/** An endpoint that is silent for this long gets nothing more until it answers, so that it does not fill the slots. */
const hangingMs = 1_000

/** The calls of one lane. */
interface Calls {
  /** When those under way began, oldest first. */
  starts: Set<{ at: number }>
  succeededAt: number
}

/**
 * The calls under way, by lane. Those of a lane are silent until one succeeds that ends after the oldest of them began;
 * of a group `mostOfOne` count at most.
 */
export function createCallsUnderWay(now: () => number, mostOfOne: number) {
  const byLane = new Map<string, Calls>()
  const byGroup = new Map<string, number>()
  let silent = 0
  const silentOf = (lane: Calls) => (hasAnswered(lane) ? 0 : lane.starts.size)

  function change(group: string, lane: Calls, act: () => void) {
    const before = silentOf(lane)
    act()
    const ofGroup = byGroup.get(group) ?? 0
    const left = ofGroup + silentOf(lane) - before
    silent += Math.min(left, mostOfOne) - Math.min(ofGroup, mostOfOne)
    if (left === 0) byGroup.delete(group)
    else byGroup.set(group, left)
  }

  return {
    /** How many calls are silent, of all groups, or of this one alone if that is more: its own endpoints are held up first. */
    silentTo: (group: string) => Math.max(silent, byGroup.get(group) ?? 0),
    answers(laneId: string) {
      const lane = byLane.get(laneId)
      return lane !== undefined && hasAnswered(lane)
    },
    isHanging(laneId: string) {
      const lane = byLane.get(laneId)
      const [oldest] = lane?.starts ?? []
      return lane !== undefined && oldest !== undefined && now() - oldest.at > hangingMs && !hasAnswered(lane)
    },
    begin({ id: laneId, group }: Pick<Lane, 'id' | 'group'>) {
      const lane = byLane.get(laneId) ?? { starts: new Set(), succeededAt: -Infinity }
      byLane.set(laneId, lane)
      const start = { at: now() }
      change(group, lane, () => lane.starts.add(start))
      return (isSuccess: boolean) => {
        change(group, lane, () => {
          lane.starts.delete(start)
          if (isSuccess) lane.succeededAt = now()
        })
        if (lane.starts.size === 0) byLane.delete(laneId)
      }
    },
  }
}

function hasAnswered({ starts, succeededAt }: Calls) {
  const [oldest] = starts
  return oldest === undefined || succeededAt >= oldest.at
}
