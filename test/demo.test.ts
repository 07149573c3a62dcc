import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { authenticateKey } from '@app/shared/contracts/platform.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { serve } from '@app/shared/bus/rpc.ts'
import { testService } from './service.ts'
import { expect, onTestFinished, test } from 'vitest'
import { sentenceOf } from '@app/deploy/command.ts'
import { type Demo, keepDemo } from '@app/deploy/stack/demo.ts'
import { writeJson } from '@app/deploy/stack/json-file.ts'

test('a service that is not available at the moment is asked again, so that a start on a busy machine does not fail', async () => {
  const service = await testService('platform')
  let asked = 0
  const whenAsked = () => {
    asked++
    if (asked < 3) throw new Problem('service_unavailable')
    return Promise.resolve({
      state: 'unknown' as const,
      key_id: null,
      organization_id: null,
      expires_at: null,
      tier: null,
      features: [],
      me: null,
    })
  }
  const app = { ...service, sealKeys: { current: 'k1', byId: new Map([['k1', randomBytes(32)]]) } }
  const serving = await serve(app, { authenticateKey }, { authenticateKey: whenAsked })
  const dataDir = mkdtempSync(join(tmpdir(), 'messaging-service-demo-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  const known: Demo = {
    organization_id: 'org_1',
    api_key: 'a key of another database',
    phone_number_id: '15550001',
    contact: { id: 'con_1', phone_number: '+15550123456' },
    window_opened_at: Date.now(),
  }
  writeJson(join(dataDir, 'demo.json'), known)
  // Its key being unknown, a demo is made anew, at a simulator which is not there.
  const keeping = keepDemo({ dataDir, bus: { natsUrl: service.natsUrl }, simulatorUrl: 'http://127.0.0.1:9' })
  await expect(keeping).rejects.toThrow('fetch failed')
  expect(asked).toBe(3)
  await serving.stop()
  await service.close()
})

test('an operator is told why a service is not available', () => {
  const nobody = new Problem('service_unavailable', { cause: new Error('nobody serves rpc.platform.keys.create') })
  expect(sentenceOf(nobody)).toBe(
    'The service is not available at the moment: try again. (nobody serves rpc.platform.keys.create)',
  )
  expect(sentenceOf(new Problem('service_unavailable'))).toBe('The service is not available at the moment: try again.')
})
