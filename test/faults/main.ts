import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

/**
 * `npm run test:faults -- [--only nemesis|stories] [--seed 7] [--seconds 600]`: the nemesis for ten minutes, then the long
 * stories. `FAULTS_SEED` and `FAULTS_SECONDS` say the same of the nemesis; a failing run prints its seed.
 */
const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    seed: { type: 'string', default: process.env['FAULTS_SEED'] || String(randomInt(1_000_000)) },
    seconds: { type: 'string', default: process.env['FAULTS_SECONDS'] || '600' },
  },
})

interface Part {
  part: 'nemesis' | 'stories'
  args: string[]
  env?: NodeJS.ProcessEnv
}

const parts: Part[] = [
  {
    part: 'nemesis',
    args: ['--project', 'faults', 'test/faults/faults.test.ts'],
    env: { FAULTS_SEED: values.seed, FAULTS_SECONDS: values.seconds },
  },
  { part: 'stories', args: ['--config', 'test/faults/long/vitest.config.ts'] },
]
const wanted = parts.filter(({ part }) => values.only === undefined || part === values.only)
if (wanted.length === 0) throw new Error('--only names the nemesis or the stories.')

const root = join(import.meta.dirname, '../..')
const vitest = join(root, 'node_modules/vitest/vitest.mjs')
// A part that fails does not hide what the others find.
const results = wanted.map(({ args, env }) =>
  spawnSync(process.execPath, [vitest, 'run', ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: 'inherit',
  }),
)
process.exit(results.every(({ status }) => status === 0) ? 0 : 1)
