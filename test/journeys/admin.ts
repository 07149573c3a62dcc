import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { inject } from 'vitest'
import type { Json } from './client.ts'

const root = join(import.meta.dirname, '../..')

/** `npm run admin -- …` against the stack of the run. */
export const admin = (...args: string[]): Promise<Json> => adminOf(inject('stackDir'))(...args)

/** The same against the stack of a data folder. */
export const adminOf =
  (dataDir: string) =>
  (...args: string[]): Promise<Json> =>
    new Promise((resolve, reject) => {
      const env = { ...process.env, SVC_DATA_DIR: dataDir }
      execFile(process.execPath, ['deploy/admin.ts', ...args], { cwd: root, env }, (err, stdout, stderr) => {
        if (err) reject(new Error(`admin ${args.join(' ')}: ${stdout}${stderr}`))
        else resolve(JSON.parse(stdout))
      })
    })
