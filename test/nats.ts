import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { inject } from 'vitest'
import { startPrivateServers } from './servers.ts'

export interface TestNats {
  url: string
  stop: () => Promise<void>
}

/** A nats-server with an empty store, for one test file: subjects of another file are not heard here. */
export async function startTestNats(): Promise<TestNats> {
  const servers = await startPrivateServers(mkdtempSync(join(inject('runFolder'), 'nats-')), ['nats'])
  return { url: servers.natsUrl, stop: servers.stop }
}
