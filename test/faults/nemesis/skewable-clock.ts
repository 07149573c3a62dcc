import { readFileSync, watch } from 'node:fs'
import { join } from 'node:path'

// Preloaded into the services of an arena: the wall clock of a process is wrong by as many milliseconds as the file says
// that is named by its pid. Timers and `performance.now` go by the monotonic clock, which nobody sets.

const folder = process.env['SKEWED_CLOCKS'] ?? ''
const own = String(process.pid)
const RightDate = Date
const rightNow = Date.now
let wrongByMs = 0

const now = () => rightNow() + wrongByMs

const SkewedDate = new Proxy(RightDate, {
  construct: (target, args: unknown[], type) => Reflect.construct(target, args.length === 0 ? [now()] : args, type),
  apply: () => new RightDate(now()).toString(),
})
RightDate.now = now
RightDate.prototype.constructor = SkewedDate
globalThis.Date = SkewedDate

watch(folder, { persistent: false }, (_event, file) => {
  if (file === own) wrongByMs = Number(readFileSync(join(folder, own), 'utf8'))
})
