import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectBus } from '@app/shared/bus/bus.ts'
import { createLog } from '@app/shared/service/log.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { provisionAt } from '../provision.ts'
import { type Servers, startServers } from '../servers/start-servers.ts'
import { newOperator } from '../testing/operator-mode.ts'
import { permissionsOf } from './permissions.ts'

/** A nats-server whose users an operator has signed: JWT and files of credentials. */

const dataDir = mkdtempSync(join(tmpdir(), 'operator-mode-'))
const operator = newOperator()
let servers: Servers

beforeAll(async () => {
  const natsAuthorization = `max_control_line: 16KB\n${operator.configuration}`
  servers = await startServers({ dataDir, log: () => {}, only: ['nats'], natsAuthorization })
})
afterAll(async () => {
  await servers.stop()
  rmSync(dataDir, { recursive: true })
})

test('the text of a file of credentials lets its user in, with what it may do', async () => {
  const { natsUrl } = servers
  await provisionAt({ natsUrl, natsSeed: operator.credentials(permissionsOf('deploy')) })
  const nkeySeed = operator.credentials(permissionsOf('gateway'))
  const { nc } = await connectBus('gateway', natsUrl, createLog('gateway', 'silent'), { nkeySeed })
  onTestFinished(() => nc.close())
  await nc.flush()
})

test('credentials that have ended, or a seed without them, let nobody in', async () => {
  const { natsUrl } = servers
  const ended = operator.credentials({}, Math.floor(Date.now() / 1000) - 3_600)
  const [, seed = ''] = /SEED-+\s+(\S+)/.exec(ended) ?? []
  for (const nkeySeed of [ended, seed]) {
    const asking = provisionAt({ natsUrl, natsSeed: nkeySeed })
    await expect(asking).rejects.toThrow('does not know us: NATS_NKEY_SEED')
    const connecting = connectBus('platform', natsUrl, createLog('platform', 'silent'), { nkeySeed })
    await expect(connecting).rejects.toThrow('Authorization Violation')
  }
})
