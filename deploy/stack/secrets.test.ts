import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { keepSecrets, natsSeedOf, newSecrets } from './secrets.ts'

const secrets = newSecrets()
afterEach(() => vi.unstubAllEnvs())

test('at our own nats-server each user has a secret of its own, whatever the environment says', () => {
  vi.stubEnv('NATS_SEED_GATEWAY', 'given')
  expect(natsSeedOf(secrets, 'gateway')).toBe(secrets.gatewayNatsSeed)
})

test('at a nats-server given by an address each user has the secret that is given, its own before the common one', () => {
  vi.stubEnv('NATS_URL', 'nats://127.0.0.1:1')
  expect(natsSeedOf(secrets, 'gateway')).toBeUndefined()
  vi.stubEnv('NATS_NKEY_SEED', 'common')
  vi.stubEnv('NATS_SEED_GATEWAY', 'own')
  expect(natsSeedOf(secrets, 'gateway')).toBe('own')
  expect(natsSeedOf(secrets, 'webhooks')).toBe('common')
})

test('the secret of a newer version is kept by an older one', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'secrets-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  const file = join(dataDir, 'secrets.json')
  writeFileSync(file, JSON.stringify({ sealKeys: 'k1:one', newerKeys: 'n1:one' }))
  keepSecrets(dataDir)
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ sealKeys: 'k1:one', newerKeys: 'n1:one' })
})

test.each(['postgres.json', 'postgres/data', 'demo.json'])(
  'none are made where %s shows that there were some',
  (name) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'secrets-'))
    onTestFinished(() => rmSync(dataDir, { recursive: true }))
    mkdirSync(dirname(join(dataDir, name)), { recursive: true })
    writeFileSync(join(dataDir, name), '{}')
    expect(() => keepSecrets(dataDir)).toThrow(`secrets.json is missing in ${dataDir}`)
    expect(existsSync(join(dataDir, 'secrets.json'))).toBe(false)
  },
)

test('what is written once is left alone', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'secrets-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  const made = keepSecrets(dataDir)
  const { ino } = statSync(join(dataDir, 'secrets.json'))
  expect(keepSecrets(dataDir)).toEqual(made)
  expect(statSync(join(dataDir, 'secrets.json')).ino).toBe(ino)
})

test('a file that cannot be read, such as one that a hand has broken, is named and left as it is', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'secrets-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  const file = join(dataDir, 'secrets.json')
  writeFileSync(file, '{ "sealKeys": "k1:one", }')
  expect(() => keepSecrets(dataDir)).toThrow(`${file} cannot be read: `)
  expect(readFileSync(file, 'utf8')).toBe('{ "sealKeys": "k1:one", }')
})
