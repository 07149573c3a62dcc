import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { constants, setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Results } from './results-reporter.ts'

/**
 * `npm test`: every test on real servers, and beside them format, lint, types and dead code. Arguments narrow the tests to
 * files whose path holds them, and leave the checks out. The last line is `N passed, N failed`; the exit code says the same.
 */
const root = join(import.meta.dirname, '..')
const bin = (name: string) => join(root, 'node_modules/.bin', name)
const only = process.argv.slice(2)
/** On a busy machine a dozen fail, whose stacks start while others do; more than that is no chance. */
const mostAgain = 24

/**
 * Lint and types are Go programs that live for seconds: to collect what they leave behind takes a third of their time, and
 * gives back a seventh of their memory. Lint has as many checkers as processors, and each checks the same types again.
 */
const frugal = { GOGC: 'off', GOMAXPROCS: '1' }

const checks: Array<[string, string, string[]]> = [
  ['format', 'oxfmt', ['--check', '.']],
  ['lint', 'oxlint', []],
  // It counts its checkers by itself. What it found of a file holds until that file, or one that it takes from, is another.
  ['types', 'tsc', ['--checkers', '1', '--incremental', '--tsBuildInfoFile', 'node_modules/.cache/types.json']],
  ['dead code', 'knip', ['--no-progress']],
]

let passed = 0
let failed = 0

const folder = mkdtempSync(join(tmpdir(), 'messaging-service-results-'))
const checking = only.length > 0 ? Promise.resolve([]) : runChecks()
const first = await runFiles(only)
// Where other programs want the processor too, a file that failed gets servers of its own, and shares the machine with one other
// at most. At home a failure is a failure.
const again = process.env['CI'] && first.whole ? first.files.filter(({ isGood }) => !isGood).slice(0, mostAgain) : []
const names = again.map(({ name }) => name)
if (names.length > 0) process.stdout.write(`\nOnce more, two at a time:\n${names.join('\n')}\n`)
const second = names.length > 0 ? await runFiles(['--maxWorkers=2', ...names]) : { whole: true, files: [] }
for (const file of [...first.files.filter(({ name }) => !names.includes(name)), ...second.files]) {
  passed += file.passed
  failed += file.isGood ? 0 : Math.max(1, file.failed)
}
// A suite that could not even begin has no failed test to count.
if (!first.whole || !second.whole) failed += 1
rmSync(folder, { recursive: true })
// Last, where they are seen.
for (const { what, code, output } of await checking) {
  if (code === 0) passed++
  else failed++
  process.stdout.write(`${code === 0 ? '✓' : '✗'} ${what}\n${code === 0 ? '' : output}`)
}

process.stdout.write(`\n${passed} passed, ${failed} failed\n`)
process.exit(failed > 0 || passed === 0 ? 1 : 0)

/** One after the other, while the tests wait for something. */
async function runChecks() {
  const ended = []
  for (const [what, program, options] of checks) {
    ended.push({ what, ...(await run(bin(program), options, 'pipe', { ...process.env, ...frugal })) })
  }
  return ended
}

/** `whole`: what went wrong, if anything did, is a file's. */
async function runFiles(args: string[]): Promise<{ whole: boolean; files: Results['files'] }> {
  process.env['TEST_RESULTS'] = join(folder, 'results.json')
  rmSync(process.env['TEST_RESULTS'], { force: true })
  const reporters = ['--reporter=default', `--reporter=${join(import.meta.dirname, 'results-reporter.ts')}`]
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const { code } = await run(process.execPath, [vitest, 'run', ...reporters, ...args], 'inherit')
  const { files, strayErrors } = resultsIn(process.env['TEST_RESULTS'])
  const isExplained = code === 0 || files.some(({ isGood }) => !isGood)
  return { whole: files.length > 0 && strayErrors === 0 && isExplained, files }
}

function resultsIn(file: string): Results {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Results
  } catch {
    return { files: [], strayErrors: 0 }
  }
}

function run(program: string, options: string[], output: 'pipe' | 'inherit', env: NodeJS.ProcessEnv = process.env) {
  return new Promise<{ code: number; output: string }>((resolve) => {
    const child = spawn(program, options, { cwd: root, env, stdio: ['ignore', output, output] })
    // Nobody waits for what is only shown at the end; the first tests wait for their stacks.
    if (output === 'pipe' && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL)
    const chunks: Buffer[] = []
    child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.stderr?.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.on('close', (code, signal) =>
      resolve({ code: signal ? 1 : (code ?? 1), output: Buffer.concat(chunks).toString() }),
    )
    child.on('error', (err) => resolve({ code: 1, output: `${err.message}\n` }))
  })
}
