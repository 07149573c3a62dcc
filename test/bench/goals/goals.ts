import { measureCallbacks } from './callbacks.ts'
import { measureCapacity } from './capacity.ts'
import { measureDeliveries } from './deliveries.ts'
import { measureFanOut } from './fan-out.ts'
import { measureCatchUp } from './catch-up.ts'
import type { Goal } from './goal.ts'
import { measureHanging } from './hanging.ts'
import { measureLatency } from './latency.ts'
import { measureLeast } from './least.ts'
import { measureList } from './list.ts'
import { measureListDepth } from './list-depth.ts'
import { measureLists } from './lists.ts'
import { measureMe } from './me.ts'
import { measureMemory } from './memory.ts'
import { measureRetention } from './retention.ts'
import { measureSend } from './send.ts'
import { measureSoak } from './soak.ts'
import { measureStart } from './start.ts'
import { measureThrottled } from './throttled.ts'

/** Every measurement, in the order in which they run: what fills the database late, what looks at all of it last. */
export const goals = {
  start: measureStart,
  me: measureMe,
  latency: measureLatency,
  throttled: measureThrottled,
  hanging: measureHanging,
  'fan-out': measureFanOut,
  send: measureSend,
  list: measureList,
  // Before the callbacks, which tell every status that there is: told twice it costs less.
  capacity: measureCapacity,
  callbacks: measureCallbacks,
  // After the callbacks, whose statuses are of what the platform was sent: this is none of the project's.
  least: measureLeast,
  retention: measureRetention,
  'list-depth': measureListDepth,
  lists: measureLists,
  deliveries: measureDeliveries,
  'catch-up': measureCatchUp,
  memory: measureMemory,
  soak: measureSoak,
} as const satisfies Record<string, Goal>

export type GoalName = keyof typeof goals
export const goalNames = Object.keys(goals) as GoalName[]
/** What runs unless it is told otherwise: a soak takes as long as the rest together, and must be asked for. */
export const usualGoals = goalNames.filter((name) => name !== 'soak')
