import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { verdictOf } from './report.ts'

/**
 * `npm run audit`: asks the registry for advisories of severity high and above on what the services run with. Exit code 1
 * when there is one; where the registry is away or gives none, it says so, and fails nobody.
 */
const root = join(import.meta.dirname, '../..')
const timeoutMs = 60_000

const { packageManager } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { packageManager: string }
// From another folder, as in deploy/run.mjs.
const { stdout, stderr, error } = spawnSync(
  'npx',
  ['--yes', packageManager, '--dir', root, 'audit', '--prod', '--json'],
  {
    cwd: tmpdir(),
    timeout: timeoutMs,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  },
)
const verdict = verdictOf(error ? error.message : stdout || stderr)
switch (verdict.kind) {
  case 'skipped':
    console.log(`- dependency audit SKIPPED, nothing was checked: ${verdict.why}`)
    break
  case 'clean':
    console.log('✓ dependency audit: no advisory of severity high or above')
    break
  case 'found':
    console.log(['✗ dependency audit:', ...verdict.lines].join('\n  '))
    process.exitCode = 1
}
