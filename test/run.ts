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
const results = join(folder, 'results.json')
const vitest = join(root, 'node_modules/vitest/vitest.mjs')
const reporters = ['--reporter=default', '--reporter=json', `--outputFile=${results}`]
const { code } = await run(process.execPath, [vitest, 'run', ...reporters, ...only], 'inherit')
const counted = countOf(results)
rmSync(folder, { recursive: true })
passed += counted.passed
failed += counted.failed
// A suite that could not even begin has no failed test to count.
if (code !== 0 && failed === 0) failed = 1

process.stdout.write(`\n${passed} passed, ${failed} failed\n`)
process.exit(failed > 0 || passed === 0 ? 1 : 0)

function countOf(file: string) {
  try {
    const { numPassedTests, numFailedTests, numFailedTestSuites } = JSON.parse(readFileSync(file, 'utf8')) as {
      numPassedTests: number
      numFailedTests: number
      numFailedTestSuites: number
    }
    return { passed: numPassedTests, failed: numFailedTests || numFailedTestSuites }
  } catch {
    return { passed: 0, failed: 1 }
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
