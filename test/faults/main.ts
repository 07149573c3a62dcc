import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { runCommand } from '@app/deploy/command.ts'
import { type Options, type Part, readOptions } from './options.ts'

/**
 * `npm run test:faults -- [--only nemesis|stories] [--seed 7] [--seconds 600]`: the nemesis for ten minutes, then the long
 * stories. `FAULTS_SEED` and `FAULTS_SECONDS` say the same of the nemesis; a failing run prints its seed.
 */
function main() {
  const options = readOptions(process.argv.slice(2), process.env)
  // A part that fails does not hide what the others find.
  const statuses = options.parts.map((part) => run(part, options))
  process.exitCode = statuses.every((status) => status === 0) ? 0 : 1
  return Promise.resolve()
}

const root = join(import.meta.dirname, '../..')
const vitest = join(root, 'node_modules/vitest/vitest.mjs')

const argsOf: Record<Part, string[]> = {
  nemesis: ['--project', 'faults', 'test/faults/faults.test.ts'],
  stories: ['--config', 'test/faults/long/vitest.config.ts'],
}

function run(part: Part, { seed, seconds }: Options) {
  const env = part === 'nemesis' ? { FAULTS_SEED: seed, FAULTS_SECONDS: seconds } : {}
  const { status } = spawnSync(process.execPath, [vitest, 'run', ...argsOf[part]], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: 'inherit',
  })
  return status
}

await runCommand(main)
