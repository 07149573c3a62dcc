import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const mostOutput = 16 * 1024 * 1024

/** What `docker …` prints; rejects with what it complains of. */
export async function docker(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('docker', args, { maxBuffer: mostOutput })
  return stdout.trim()
}

/** Where a port of a container is found on this machine, as `127.0.0.1:32768`. */
export const placeOf = async (container: string, port: number): Promise<string> =>
  (await docker('port', container, String(port))).split('\n')[0] ?? ''
