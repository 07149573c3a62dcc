import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readlinkSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** A disk of its own under a folder, that can lose power: what was not forced onto it is gone then. */
export interface LossyDisk {
  /** Forces all that was written onto it, as the system does by itself twice a minute. */
  flush: () => void
  /** From now on nobody reads or writes, and those that run in it are dead, as on a machine that is off. */
  lose: () => void
  /** Waits until nobody has it any more, and mounts it with what it has kept. */
  restore: () => Promise<void>
  unmount: () => Promise<void>
}

/** EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH (linux/fs/ext4/ext4.h), by which file systems are tested for a loss of power. */
const shutDown =
  'open(my $folder, "<", $ARGV[0]) or die; my $how = pack("L", 2); ioctl($folder, 0x8004587d, $how) or die'
const leaveWithinMs = 15_000

const run = (command: string, args: string[]) => spawnSync(command, args, { encoding: 'utf8' })

/** Undefined where we may not mount one: as others than root, in most containers, on other systems than Linux. */
export function mountLossyDisk(folder: string, megabytes: number): LossyDisk | undefined {
  mkdirSync(folder, { recursive: true })
  const image = `${folder}.disk`
  writeFileSync(image, '')
  truncateSync(image, megabytes * 1024 * 1024)
  const mount = () => run('mount', ['-t', 'ext4', '-o', 'loop', image, folder]).status === 0
  if (run('mkfs.ext4', ['-q', '-F', '-m', '0', image]).status !== 0 || !mount()) return undefined
  run('rmdir', [`${folder}/lost+found`])
  run('chmod', ['711', folder])

  async function unmount() {
    for (const endsAt = performance.now() + leaveWithinMs; ; await sleep(50)) {
      const { status, stderr } = run('umount', [folder])
      if (status === 0) return
      if (performance.now() > endsAt) throw new Error(`The disk at ${folder} is still in use: ${stderr}`)
    }
  }

  return {
    flush: () => void run('sync', ['-f', folder]),
    lose() {
      const { status, stderr } = run('perl', ['-e', shutDown, folder])
      if (status !== 0) throw new Error(`The disk at ${folder} cannot lose power: ${stderr}`)
      killAllIn(folder)
    },
    async restore() {
      await unmount()
      if (!mount()) throw new Error(`The disk at ${folder} does not come back.`)
    },
    async unmount() {
      await unmount()
      rmSync(image)
    },
  }
}

/** Also what has left the group of the process that started it, as Postgres's sessions do. */
function killAllIn(folder: string) {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  for (const pid of pids) {
    try {
      if (readlinkSync(`/proc/${pid}/cwd`).startsWith(folder)) process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It ended meanwhile.
    }
  }
}
