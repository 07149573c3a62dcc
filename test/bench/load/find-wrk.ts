import { spawnSync } from 'node:child_process'
import { canInstall } from '@app/deploy/servers/debian.ts'
import { findPrograms } from '@app/deploy/servers/find-program.ts'

/** The load generator. As root on Debian it is installed when it is missing. */
export function findWrk(): string {
  const [found] = findPrograms(['wrk'])
  if (found !== undefined) return found
  if (!canInstall() || process.env['SVC_NO_INSTALL'] === '1')
    throw new Error('The load generator wrk was not found: apt-get install wrk   or   brew install wrk')
  console.log('Installing wrk with apt-get (SVC_NO_INSTALL=1 refuses) …')
  run(['apt-get', 'update'])
  run(['apt-get', 'install', '-y', '--no-install-recommends', 'wrk'])
  return findWrkInstalled()
}

function findWrkInstalled() {
  const [found] = findPrograms(['wrk'])
  if (found === undefined) throw new Error('wrk was installed, and is not where programs are.')
  return found
}

function run([command = '', ...args]: string[]) {
  const { status, stderr } = spawnSync(command, args, {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`\`${[command, ...args].join(' ')}\` failed:\n${stderr}`)
}
