import { chmodSync, globSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { postgres } from '@app/deploy/servers/postgres.ts'

/** Of Debian's package `faketime`, and where other systems put it. */
const libraries = [
  '/usr/lib/*/faketime/libfaketime.so.1',
  '/usr/lib{,64}/faketime/libfaketime.so.1',
  '/usr/local/lib/faketime/libfaketime.so.1',
]

/** The wall clock of a Postgres, which can be put wrong while it runs. */
export interface PostgresClock {
  /** Ahead by so many milliseconds, or behind by less than none. */
  skew: (byMs: number) => void
}

/**
 * Lets a Postgres that is started from now on, as a program of this machine, have a clock that can be put wrong: a program of
 * its name comes first on the PATH, which loads libfaketime. Undefined where that is not installed.
 */
export function offerPostgresClock(folder: string, dataDir: string): PostgresClock | undefined {
  const [library] = globSync(libraries)
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  const program = postgres.find(dataDir)
  if (library === undefined || program === undefined) return undefined
  const clock = join(folder, 'clock')
  const settings = `LD_PRELOAD='${library}' FAKETIME_TIMESTAMP_FILE='${clock}'`
  // Without a cache, since all processes of one server have one clock.
  const how = 'FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1'
  mkdirSync(folder, { mode: 0o711 })
  // Else what the run's mask forbids, the user whom Postgres runs as could not read.
  chmodSync(folder, 0o711)
  const set = (byMs: number) => writeFileSync(clock, `${byMs < 0 ? '-' : '+'}${Math.abs(byMs) / 1_000}s\n`)
  set(0)
  writeFileSync(join(folder, 'postgres'), `#!/bin/sh\n${settings} ${how} exec '${program}' "$@"\n`)
  chmodSync(join(folder, 'postgres'), 0o755)
  // Its neighbour makes the database.
  symlinkSync(join(dirname(program), 'initdb'), join(folder, 'initdb'))
  process.env['PATH'] = `${folder}${delimiter}${process.env['PATH'] ?? ''}`
  return { skew: set }
}
