import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { rewriteStackFile, type RunningStack } from './stack-file.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'stack-file-'))
afterAll(() => rmSync(dataDir, { recursive: true }))

const stack: RunningStack = {
  publicUrl: 'http://127.0.0.1:8080',
  simulatorUrl: 'http://127.0.0.1:1',
  servers: { postgresUrl: '', redisUrl: '', natsUrl: '', processes: [], stop: async () => {} },
  bus: { natsUrl: '', natsSeed: undefined },
  demo: {
    organization_id: 'org_1',
    api_key: 'key',
    phone_number_id: '1',
    contact: { id: 'ctc_1', phone_number: '+15550123456' },
    window_opened_at: 0,
  },
  services: [],
}

test('a restart goes on when the file cannot be written, as on a full disk, and the next one writes it', () => {
  rewriteStackFile(join(dataDir, 'gone'), stack)
  rewriteStackFile(dataDir, stack)
  expect(JSON.parse(readFileSync(join(dataDir, 'stack.json'), 'utf8'))).toMatchObject({ api_key: 'key' })
})

test('the file, which holds a key, is for the eyes of its user alone', () => {
  rewriteStackFile(dataDir, stack)
  expect(statSync(join(dataDir, 'stack.json')).mode & 0o777).toBe(0o600)
})
