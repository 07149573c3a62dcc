import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { getSetup } from '../onboarding/get-setup.ts'
import { ask, startPeers, startTestApp, type TestApp } from './app.ts'

/** The service for the tests of a file, with peers of its own for each; there once they run. */
export function appWithPeers() {
  const both = {} as { it: TestApp; peers: Awaited<ReturnType<typeof startPeers>> }
  beforeAll(async () => {
    both.it = await startTestApp()
  })
  afterAll(() => both.it.close())
  beforeEach(async () => {
    both.it.upstream.asked.length = 0
    both.peers = await startPeers(both.it.app)
  })
  afterEach(() => both.peers.stop())
  return Object.assign(both, {
    /** How often the platform was asked that. */
    asked: (path: string) => both.it.upstream.asked.filter(({ line }) => line.includes(path)).length,
    setupOf: (token: string) => ask(both.it.app, getSetup, { token }),
  })
}
