import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { runProgram } from '../processes/run-program.ts'
import { isRoot } from './account.ts'
import { findPrograms } from './find-program.ts'

/** Debian's packages ask this program whether they may start their service (Debian policy 9.11.3); 101 means no. */
const policy = '/usr/sbin/policy-rc.d'

export const canInstall = (): boolean =>
  isRoot() && existsSync('/etc/debian_version') && findPrograms(['apt-get']).length > 0

/** Installs Debian packages, but lets none of them start its own server on the default port, now or at the next boot. */
export function installPackages(packages: string[]): void {
  const isOurs = !existsSync(policy)
  if (isOurs) writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  try {
    run(['apt-get', 'update'])
    // Another program may be installing, too: wait for it.
    run(['apt-get', 'install', '-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=120', ...packages])
    if (existsSync('/run/systemd/system')) run(['systemctl', 'disable', ...packages])
  } finally {
    if (isOurs) rmSync(policy, { force: true })
  }
}

function run([command = '', ...args]: string[]) {
  const { status, stdout, stderr, error } = runProgram(command, args, {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  })
  if (status === 0) return
  const output = `${stdout ?? ''}${stderr ?? ''}`.trimEnd().split('\n').slice(-15).join('\n')
  throw new Error(`\`${[command, ...args].join(' ')}\` failed:\n${error?.message ?? output}`)
}
