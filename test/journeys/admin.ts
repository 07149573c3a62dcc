import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { inject } from 'vitest'
import type { Json } from './client.ts'

const root = join(import.meta.dirname, '../..')

/** `npm run admin -- …` against the stack of the run. */
export function admin(...args: string[]): Promise<Json> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, SVC_DATA_DIR: inject('stackDir') }
    execFile(process.execPath, ['deploy/admin.ts', ...args], { cwd: root, env }, (err, stdout, stderr) => {
      if (err) reject(new Error(`admin ${args.join(' ')}: ${stdout}${stderr}`))
      else resolve(JSON.parse(stdout))
    })
  })
}
