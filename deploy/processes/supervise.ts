import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import { keepSmall, lastLines, logFileOf, openLog, sizeOf } from './log-file.ts'
import { tied } from './tie.ts'
import { forgetProcess, recordProcess, type StopSignal, stopRecorded } from './records.ts'

export interface Program {
  /** Names the process, its log and its record: one at a time per data folder. */
  name: string
  command: string
  args: readonly string[]
  env: NodeJS.ProcessEnv
  /** The folder that it runs in; ours, unless told otherwise. */
  cwd?: string | undefined
  /** The user that it runs as; ours, unless told otherwise. */
  user?: { uid: number; gid: number } | undefined
  stopSignal: StopSignal
  /** After that it is killed. */
  stopMs: number
  /** A Node program of ours, that learns through a channel of this process's death (`leash.ts`); others are `tied`. */
  leashed?: boolean | undefined
}

/** A process that is started again whenever it ends by itself. */
export interface Supervised {
  readonly name: string
  readonly logFile: string
  /** Undefined while it does not run. */
  pid: () => number | undefined
  /** How often it ended by itself. */
  deaths: () => number
  /** It ended because of its settings, which no restart changes. */
  refusesSettings: () => boolean
  /** The end of what it has written since it is supervised. */
  lastWords: () => string
  isStopped: () => boolean
  /** Ends it, and starts it no more until `start`. */
  stop: () => Promise<void>
  start: () => void
}

export interface Watcher {
  /** The process ended by itself and will be started again; the sentence says how it ended. */
  onDeath?: (sentence: string) => void
  /** A new process took the place of one that ended. */
  onRestart?: () => void
  /** Then a process that ends by itself is let go: somebody told all of them to end. */
  isEnding?: () => boolean
}

const firstDelayMs = 100
const longestDelayMs = 5_000
/** One that lived as long is no crash loop. Below the 5 s between the kills of the fault tests. */
const soundLifeMs = 3_000
/** EX_CONFIG of sysexits.h (shared/service/environment.ts). */
const wrongSettings = 78

/** Starts a program, after ending what an earlier start of the same name left behind. */
export async function supervise(dataDir: string, program: Program, watcher: Watcher = {}): Promise<Supervised> {
  const logFile = logFileOf(dataDir, program.name)
  const logStart = sizeOf(logFile)
  let child: ChildProcess | undefined
  let restart: NodeJS.Timeout | undefined
  let stopRotating = () => {}
  let delays = createDelays()
  let deaths = 0
  let isRefusal = false
  let isWanted = false

  function launch() {
    const startedAt = performance.now()
    const launched = spawnProgram(dataDir, program, logFile)
    child = launched
    void endOf(launched).then((how) => {
      if (child !== launched) return
      child = undefined
      if (!isWanted || watcher.isEnding?.()) return
      deaths++
      isRefusal = launched.exitCode === wrongSettings
      watcher.onDeath?.(`${program.name} ${how}; starting it again (log: ${logFile})`)
      const delayMs = delays.after(performance.now() - startedAt)
      restart = setTimeout(() => {
        launch()
        watcher.onRestart?.()
      }, delayMs)
    })
  }

  function start() {
    if (isWanted) return
    isWanted = true
    delays = createDelays()
    launch()
    stopRotating = keepSmall(logFile)
  }

  async function stop() {
    isWanted = false
    clearTimeout(restart)
    stopRotating()
    if (child) await end(child, program)
    forgetProcess(dataDir, program.name)
  }

  await stopRecorded(dataDir, program.name, program.stopMs)
  start()
  return {
    name: program.name,
    logFile,
    pid: () => child?.pid,
    deaths: () => deaths,
    refusesSettings: () => isRefusal,
    lastWords: () => lastLines(logFile, logStart),
    isStopped: () => !isWanted,
    stop,
    start,
  }
}

/** How long to wait before the next start: longer after each short life. */
export function createDelays() {
  let next = firstDelayMs
  return {
    after(lifeMs: number) {
      const delayMs = lifeMs >= soundLifeMs ? firstDelayMs : next
      next = Math.min(delayMs * 2, longestDelayMs)
      return delayMs
    },
  }
}

/** In words. Either event ends it: `error` alone when it could not be started at all. */
function endOf(child: ChildProcess) {
  return new Promise<string>((resolve) => {
    child.once('error', (err) => resolve(`could not be started: ${err.message}`))
    child.once('exit', (code, signal) => resolve(signal ? `was ended by ${signal}` : `ended with exit code ${code}`))
  })
}

/** In a process group of its own, so that a Ctrl-C in the terminal reaches us alone, and we stop things in order. */
function spawnProgram(
  dataDir: string,
  { name, command, args, env, cwd, user, stopSignal, leashed }: Program,
  logFile: string,
) {
  const log = openLog(logFile)
  try {
    const [file, all] = leashed ? [command, args] : tied(command, args, stopSignal)
    const child = spawn(file, all, {
      env,
      ...(cwd !== undefined && { cwd }),
      ...user,
      detached: true,
      stdio: leashed ? ['ignore', log, log, 'ipc'] : ['ignore', log, log],
    })
    if (child.pid !== undefined) recordIfPossible(dataDir, name, child.pid, stopSignal)
    return child
  } finally {
    closeSync(log)
  }
}

/** On a full disk it runs without a record: only a start after a kill -9 of this process would look for one. */
function recordIfPossible(...process: Parameters<typeof recordProcess>) {
  try {
    recordProcess(...process)
  } catch {
    // The next start of the program tries again.
  }
}

async function end(child: ChildProcess, { stopSignal, stopMs }: Program) {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  child.kill(stopSignal)
  const force = setTimeout(() => killGroup(child), stopMs)
  await ended
  clearTimeout(force)
}

/** The program and what it started itself. */
function killGroup({ pid }: ChildProcess) {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It ended by itself in between.
  }
}
