import { Problem } from '../api/problem.ts'
import { isLockTimeout } from '../database/database.ts'

/** How long the items of a batch that waited for a lock are run one by one: one that all need is found as soon as the second waits. */
const patienceMs = 1_500

interface Job<I, O> {
  item: I
  resolve: (output: O) => void
  reject: (err: unknown) => void
}

interface BatchSize<I> {
  /** Items in a run, 64 by default. */
  rows?: number
  /** Sum of `sizeOf` in a run of several items, 1 MiB by default. */
  bytes?: number
  /** Bytes of an item, 0 by default. */
  sizeOf?: (item: I) => number
}

export interface BatchLimits<I> extends BatchSize<I> {
  /** Runs at the same time, 2 by default; 1 where order must hold. */
  inFlight?: number
  /** Items that wait, 4,096 by default; a call beyond it throws `service_unavailable`. */
  maxWaiting?: number
  /** Whose an item is. Where more wait than fit into a run, owners take turns, each with its items in their order. */
  ownerOf?: (item: I) => string
}

/**
 * Combines single calls into batches. The calls of one moment run at once while fewer than `inFlight` runs are out, else they are gathered until
 * one returns. No timer, so it costs nothing when idle. `run` must return its outputs in the order of its items. When Postgres refuses
 * a batch for the data of a row, or for a lock that it waited for too long, its items are run one by one, so that only the wrong one
 * fails; after any other error all calls of the batch throw it, since the run may have been done (a lost connection).
 */
export function batched<I, O>(run: (items: I[]) => Promise<O[]>, limits: BatchLimits<I> = {}): (item: I) => Promise<O> {
  const { inFlight = 2, rows = 64, bytes = 1 << 20, maxWaiting = 4096, sizeOf = () => 0, ownerOf } = limits
  let waiting: Job<I, O>[] = []
  let running = 0
  let woken = false

  const size = () => batchSize(waiting, { rows, bytes, sizeOf: ({ item }) => sizeOf(item) })

  function take() {
    if (ownerOf && size() < waiting.length) waiting = inTurns(waiting, ({ item }) => ownerOf(item))
    return waiting.splice(0, size())
  }

  async function settle(jobs: Job<I, O>[]): Promise<void> {
    try {
      const outputs = await run(jobs.map((job) => job.item))
      for (const [n, job] of jobs.entries()) job.resolve(outputs[n] as O)
    } catch (err) {
      if (jobs.length > 1 && (refusedForARow(err) || isLockTimeout(err))) await settleEach(jobs, err)
      else for (const job of jobs) job.reject(err)
    }
  }

  async function settleEach(jobs: Job<I, O>[], err: unknown): Promise<void> {
    const until = isLockTimeout(err) ? performance.now() + patienceMs : Infinity
    for (const job of jobs)
      if (performance.now() < until) await settle([job])
      else job.reject(err)
  }

  function pump() {
    woken = false
    while (waiting.length > 0 && running < inFlight) {
      running++
      void settle(take()).finally(() => {
        running--
        pump()
      })
    }
  }

  return (item) => {
    if (waiting.length >= maxWaiting) return Promise.reject(new Problem('service_unavailable'))
    return new Promise<O>((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      if (!woken) {
        woken = true
        setImmediate(pump)
      }
    })
  }
}

/** How many of the first items make a batch: at least one of them. */
export function batchSize<I>(items: I[], { rows, bytes, sizeOf }: Required<BatchSize<I>>): number {
  let size = 0
  let count = 0
  for (const item of items) {
    size += sizeOf(item)
    if (count === rows || (count > 0 && size > bytes)) break
    count++
  }
  return count
}

/** The first item of each owner, then the second ones, and so on. What is left of it comes first when it is put in turns again. */
function inTurns<T>(items: T[], ownerOf: (item: T) => string): T[] {
  const owners = items.map(ownerOf)
  if (owners.every((owner) => owner === owners[0])) return items
  const taken = new Map<string, number>()
  const rounds: T[][] = []
  for (const [n, owner] of owners.entries()) {
    const round = taken.get(owner) ?? 0
    taken.set(owner, round + 1)
    const item = items[n] as T
    if (rounds[round]?.push(item) === undefined) rounds[round] = [item]
  }
  return rounds.flat()
}

/** SQLSTATE classes 22 and 23: the row's own fault, and surely rolled back. */
function refusedForARow(err: unknown) {
  return err instanceof Error && 'code' in err && /^2[23]/.test(String(err.code))
}
