import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/**
 * When the process with this id was started, as a text that no other process with the same id can have; undefined when
 * there is none. Process ids are used again, sometimes soon, and then a bare id would name a stranger.
 */
export function identityOf(pid: number): string | undefined {
  try {
    return process.platform === 'linux' ? linuxIdentity(pid) : startedAt(pid)
  } catch {
    return undefined
  }
}

function linuxIdentity(pid: number) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The second field, the name, is in parentheses and may hold spaces: the 3rd (state) and the 22nd (start) follow it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const isDead = fields[0] === 'Z' || fields[0] === 'X'
  return isDead ? undefined : `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${fields[19]}`
}

const startedAt = (pid: number) =>
  execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || undefined
