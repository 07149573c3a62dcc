import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

/**
 * `npm run test:faults -- [--seed 7] [--seconds 600]`: the nemesis for ten minutes. `FAULTS_SEED` and `FAULTS_SECONDS` say
 * the same; a failing run prints its seed.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: process.env['FAULTS_SEED'] || String(randomInt(1_000_000)) },
    seconds: { type: 'string', default: process.env['FAULTS_SECONDS'] || '600' },
  },
})
const root = join(import.meta.dirname, '../..')
const vitest = join(root, 'node_modules/vitest/vitest.mjs')
const { status } = spawnSync(process.execPath, [vitest, 'run', '--project', 'faults', 'test/faults/faults.test.ts'], {
  cwd: root,
  env: { ...process.env, FAULTS_SEED: values.seed, FAULTS_SECONDS: values.seconds },
  stdio: 'inherit',
})
process.exit(status ?? 1)
