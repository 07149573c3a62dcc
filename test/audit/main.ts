import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { verdictOf } from './report.ts'

/**
 * `npm run audit`: asks the registry for advisories of severity high and above on what the services run with. Exit code 1
 * when there is one; where the registry is away or gives none, it says so, and fails nobody.
 */
const root = join(import.meta.dirname, '../..')
const timeoutMs = 60_000

/**
 * The pnpm that installs asks an address that npm's registry has retired (since July 2026 it answers 410,
 * github.com/pnpm/pnpm/issues/13033). This one asks the newer one, and needs the Node that runs this file.
 */
const asking = 'pnpm@11.28.10'
const env = {
  ...process.env,
  PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter),
  // Else it would hand over to the pnpm that package.json names.
  pnpm_config_pm_on_fail: 'ignore',
}

// From another folder, as in deploy/run.mjs.
const { stdout, stderr, error } = spawnSync('npx', ['--yes', asking, '--dir', root, 'audit', '--prod', '--json'], {
  cwd: tmpdir(),
  env,
  timeout: timeoutMs,
  encoding: 'utf8',
  maxBuffer: 64 * 1024 * 1024,
})
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
