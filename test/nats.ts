import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import type { Supervised } from '@app/deploy/processes/supervise.ts'
import { inject } from 'vitest'
import { startPrivateServers } from './servers.ts'

export interface TestNats {
  url: string
  /** For whoever breaks it: its process, and where it keeps its streams. */
  process: Supervised | undefined
  folder: string
  stop: () => Promise<void>
}

/** A nats-server with an empty store, for one test file: subjects of another file are not heard here. */
export async function startTestNats(): Promise<TestNats> {
  const folder = mkdtempSync(join(inject('runFolder'), 'nats-'))
  const { natsUrl, processes, stop } = await startPrivateServers(folder, ['nats'])
  return { url: natsUrl, process: processes[0], folder: join(folder, 'nats'), stop }
}
