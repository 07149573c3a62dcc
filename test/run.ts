import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * `npm test`: format, lint, types, dead code, then every test on real servers. Arguments narrow the tests to files whose
 * path holds them, and leave the checks out. The last line is `N passed, N failed`; the exit code says the same.
 */
const root = join(import.meta.dirname, '..')
const bin = (name: string) => join(root, 'node_modules/.bin', name)
const only = process.argv.slice(2)
/** More files than that do not fail by chance. */
const mostAgain = 5

const checks: Array<[string, string, string[]]> = [
  ['format', 'oxfmt', ['--check', '.']],
  ['lint', 'oxlint', []],
  ['types', 'tsc', []],
  ['dead code', 'knip', ['--no-progress']],
]

let passed = 0
let failed = 0

for (const [what, program, options] of only.length > 0 ? [] : checks) {
  const startedAt = performance.now()
  const { code, output } = await run(bin(program), options, 'pipe')
  if (code === 0) passed++
  else failed++
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  process.stdout.write(`${code === 0 ? '✓' : '✗'} ${what} (${seconds} s)\n${code === 0 ? '' : output}`)
}

const folder = mkdtempSync(join(tmpdir(), 'messaging-service-results-'))
const first = await runFiles(only)
// Where other programs want the processor too, a file that failed gets servers of its own and the machine for itself. At home
// a failure is a failure.
const again = process.env['CI'] && first.whole ? first.files.filter(({ isGood }) => !isGood).slice(0, mostAgain) : []
const names = again.map(({ name }) => name)
if (names.length > 0) process.stdout.write(`\nOnce more, by themselves:\n${names.join('\n')}\n`)
const second = names.length > 0 ? await runFiles(names) : { whole: true, files: [] }
for (const file of [...first.files.filter(({ name }) => !names.includes(name)), ...second.files]) {
  passed += file.passed
  failed += file.isGood ? 0 : Math.max(1, file.failed)
}
// A suite that could not even begin has no failed test to count.
if (!first.whole || !second.whole) failed += 1
rmSync(folder, { recursive: true })

process.stdout.write(`\n${passed} passed, ${failed} failed\n`)
process.exit(failed > 0 || passed === 0 ? 1 : 0)

interface TestFile {
  name: string
  passed: number
  failed: number
  isGood: boolean
}

/** `whole`: what went wrong, if anything did, is a file's. */
async function runFiles(files: string[]): Promise<{ whole: boolean; files: TestFile[] }> {
  const results = join(folder, 'results.json')
  rmSync(results, { force: true })
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile=${results}`]
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const { code } = await run(process.execPath, [vitest, 'run', ...reporters, ...files], 'inherit')
  const found = resultsIn(results)
  return { whole: found.length > 0 && (code === 0 || found.some(({ isGood }) => !isGood)), files: found }
}

function resultsIn(file: string): TestFile[] {
  try {
    const { testResults } = JSON.parse(readFileSync(file, 'utf8')) as {
      testResults: { name: string; status: string; assertionResults: { status: string }[] }[]
    }
    return testResults.map(({ name, status, assertionResults }) => {
      const count = (wanted: string) => assertionResults.filter((one) => one.status === wanted).length
      return { name, passed: count('passed'), failed: count('failed'), isGood: status === 'passed' }
    })
  } catch {
    return []
  }
}

function run(program: string, options: string[], output: 'pipe' | 'inherit') {
  return new Promise<{ code: number; output: string }>((resolve) => {
    const child = spawn(program, options, { cwd: root, stdio: ['ignore', output, output] })
    const chunks: Buffer[] = []
    child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.stderr?.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.on('close', (code, signal) =>
      resolve({ code: signal ? 1 : (code ?? 1), output: Buffer.concat(chunks).toString() }),
    )
    child.on('error', (err) => resolve({ code: 1, output: `${err.message}\n` }))
  })
}
