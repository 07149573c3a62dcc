import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { compileCache } from './compile-cache.ts'

interface Ended {
  exitCode: number | null
  said: string
  complained: string
}

/** A module that stands in a folder for as long as it runs: its imports are those of a file there. */
export async function runCode(folder: string, code: string, env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    cwd: folder,
    env: { ...compileCache, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [said, complained] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { exitCode: child.exitCode, said, complained }
}
