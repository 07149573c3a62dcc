import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { dirname } from 'node:path'

interface Ran {
  output: string
  /** Of the last command that failed, 0 when none did. */
  status: number
}

export interface Shell {
  /** Runs what somebody would paste; variables and functions stay for the next. */
  run: (code: string) => Promise<Ran>
  /** Ends it, with what it left running. */
  close: () => void
}

const usualTimeoutMs = 50_000

/** One terminal, in which the snippets of a page are pasted one after the other. */
export function openShell(cwd: string, env: Record<string, string>, timeoutMs = usualTimeoutMs): Shell {
  const path = `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`
  const bash = spawn('bash', ['--noprofile', '--norc'], {
    cwd,
    env: { ...process.env, ...env, PATH: path },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  })
  let output = ''
  let onOutput = () => {}
  for (const stream of [bash.stdout, bash.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      onOutput()
    })
  }
  bash.stdin.write("set -E; failed=0; trap 'failed=$?' ERR\n")

  return {
    run(code) {
      output = ''
      const end = `end-${randomUUID()}`
      bash.stdin.write(`{\n${code}\n} < /dev/null\nprintf '\\n%s %s\\n' ${end} "$failed"; failed=0\n`)
      return new Promise((resolve, reject) => {
        const fail = () => reject(new Error(`no end of:\n${code}\n${output}`))
        const timer = setTimeout(fail, timeoutMs)
        // What it cannot read ends it.
        bash.once('exit', fail)
        onOutput = () => {
          const [, before = '', status] = new RegExp(`^(.*)\\n${end} (\\d+)\\n`, 's').exec(output) ?? []
          if (status === undefined) return
          clearTimeout(timer)
          bash.off('exit', fail)
          resolve({ output: before, status: Number(status) })
        }
      })
    },
    close() {
      if (bash.pid !== undefined && bash.exitCode === null) process.kill(-bash.pid, 'SIGKILL')
    },
  }
}
