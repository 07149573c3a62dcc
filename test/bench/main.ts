import { writeFileSync } from 'node:fs'
import { openBench, type Bench } from './bench.ts'
import { writeFigures } from './capacity/page.ts'
import type { Result } from './goals/goal.ts'
import { type GoalName, goals } from './goals/goals.ts'
import { readMachine } from './machine.ts'
import { watchOthers } from './processes.ts'
import { type Options, readOptions } from './options.ts'
import { beginProfiling } from './profiling.ts'
import { rowsOf, tableOf } from './table.ts'

// The project and the floors that it is compared with, measured side by side in one run: see README.md.

const resultsFile = 'bench-results.json'
/** What a machine does beside, by itself. */
const quietShare = 0.05

async function main(args: string[]) {
  const options = readOptions(args)
  const bench = openBench(options)
  endEarly(bench)
  const startedAt = new Date()
  try {
    const seen = await measureAll(bench, options)
    if (bench.isStopping()) return
    const keepFolder = seen.failures.length > 0
    await bench.stop({ keepFolder })
    if (keepFolder) seen.failures.push(`The logs are in ${bench.folder}`)
    report(startedAt, options, seen)
  } catch (err) {
    await bench.stop()
    throw err
  }
}

function report(startedAt: Date, options: Options, seen: Seen) {
  const { results, costs, failures } = seen
  const figures = Object.values(results).flatMap((result) => result.figures)
  const rows = rowsOf(figures)
  const notes = [...Object.values(results).flatMap((result) => result.notes ?? []), ...disturbances(seen)]
  const parts = [
    rows.length > 0 ? tableOf(rows) : '',
    notes.join('\n'),
    costs.join('\n'),
    failures.map((one) => `FAILED ${one}`).join('\n'),
  ]
  console.log(`\n${parts.filter(Boolean).join('\n\n')}`)
  const file = { started_at: startedAt, options, machine: readMachine(), rows, figures, ...seen }
  writeFileSync(resultsFile, JSON.stringify(file, null, 2))
  console.log(`\nEverything that was seen: ${resultsFile}`)
  if (options.capacity !== undefined) {
    writeFigures(options.capacity, results.capacity?.details, {
      machine: readMachine(),
      takenAt: startedAt,
      others: seen.others.capacity ?? 0,
    })
    console.log(`Figures written: ${options.capacity}`)
  }
  if (failures.length > 0) process.exitCode = 1
}

/** Where others wanted the processor, both sides of a ratio suffer, but not alike. */
function disturbances({ others }: Seen) {
  const disturbed = Object.entries(others).filter(([, share]) => share > quietShare)
  if (disturbed.length === 0) return []
  const shares = disturbed.map(([name, share]) => `${name} ${(100 * share).toFixed(0)} %`)
  return [`DISTURBED: other programs used a share of this machine’s processors meanwhile: ${shares.join(', ')}`]
}

/** Ctrl-C, SIGTERM, a closed terminal, or the death of the process that started us: nothing that we started stays. */
function endEarly(bench: Bench) {
  // Several may come: a signal to the whole process group arrives again from npm.
  let ending: Promise<void> | undefined
  const end = () => void (ending ??= bench.stop().finally(() => process.exit(130)))
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'disconnect']) process.on(signal, end)
  process.channel?.unref()
}

interface Seen {
  results: Partial<Record<GoalName, Result>>
  /** The share of the machine that other programs used meanwhile. */
  others: Partial<Record<GoalName, number>>
  /** What costs most, where profiles were asked for. */
  costs: string[]
  failures: string[]
}

/** One that fails is told at the end, and does not keep the others from being measured. */
async function measureAll(bench: Bench, options: Options): Promise<Seen> {
  const profiling = options.profile ? await beginProfiling(bench) : undefined
  const seen: Seen = { results: {}, others: {}, costs: [], failures: [] }
  for (const name of options.goals) {
    const startedAt = performance.now()
    const usedByOthers = watchOthers()
    bench.say(`${name} …`)
    try {
      seen.results[name] = await goals[name](bench)
      const died = (await bench.project()).died()
      if (died.length > 0) throw new Error(`${died.join(', ')} died meanwhile`)
    } catch (err) {
      if (bench.isStopping()) return seen
      seen.failures.push(`${name}: ${err instanceof Error ? err.message : String(err)}`)
    }
    seen.others[name] = usedByOthers()
    bench.say(`${name} took ${((performance.now() - startedAt) / 1000).toFixed(0)} s`)
  }
  if (profiling) seen.costs = await profiling.end()
  return seen
}

await main(process.argv.slice(2)).catch((err: unknown) => {
  console.error(err instanceof Error ? err.message : err)
  process.exitCode = 1
})
