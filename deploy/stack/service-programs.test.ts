import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { readOptions, repository } from './options.ts'
import { newSecrets } from './secrets.ts'
import { instancesOf } from './service-programs.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'programs-'))
afterAll(() => rmSync(dataDir, { recursive: true }))
afterEach(() => vi.unstubAllEnvs())

async function gateways(...args: string[]) {
  const url = 'postgres://postgres:x@127.0.0.1:1/postgres'
  const servers = { postgresUrl: url, redisUrl: '', natsUrl: '', processes: [], stop: async () => {} }
  const options = readOptions(args, { SVC_DATA_DIR: dataDir })
  const setup = { options, servers, secrets: newSecrets(), publicUrl: '', simulatorUrl: '' }
  return (await instancesOf(setup)).filter(({ service }) => service === 'gateway')
}

const gateway = async () => (await gateways())[0]
const environmentOfGateway = async () => (await gateway())?.program.env

test.each([
  ['', '127.0.0.1'],
  ['0.0.0.0', '127.0.0.1'],
  ['::', '127.0.0.1'],
  ['workstation.example', '127.0.0.1'],
  ['10.1.2.3', '10.1.2.3'],
  ['::1', '[::1]'],
])('what listens at "%s" is reached at %s', async (given, host) => {
  vi.stubEnv('HOST', given)
  vi.stubEnv('PROBE_HOST', given)
  const found = await gateway()
  expect(found?.publicUrl).toBe(`http://${host}:8080`)
  expect(found?.url).toBe(`http://${host}:${found?.program.env['PROBE_PORT']}`)
})

test.each([
  ['0.0.0.0', '0.0.0.0'],
  ['::', '::'],
  // As tcsh and conda export it.
  ['workstation.example', undefined],
  ['x86_64-conda-linux-gnu', undefined],
])('of HOST=%s the gateway is told %s', async (given, told) => {
  vi.stubEnv('HOST', given)
  expect((await environmentOfGateway())?.['HOST']).toBe(told)
})

test('another setting of a service is passed on', async () => {
  vi.stubEnv('TRUST_PROXY', '1')
  expect(await environmentOfGateway()).toMatchObject({ TRUST_PROXY: '1' })
})

test('what bounds the memory of a service is set as in the image', async () => {
  const dockerfile = readFileSync(`${repository}deploy/image/Dockerfile`, 'utf8')
  const [, line = ''] = /^ENV (MALLOC_.*)$/m.exec(dockerfile) ?? []
  const ofImage = Object.fromEntries(line.split(' ').map((one) => one.split(/=(.*)/).slice(0, 2)))
  expect(Object.keys(ofImage)).toEqual(['MALLOC_ARENA_MAX', 'MALLOC_MMAP_THRESHOLD_', 'NODE_OPTIONS'])
  vi.stubEnv('NODE_OPTIONS', undefined)
  expect(await environmentOfGateway()).toMatchObject(ofImage)
})

test.each(['DATABASE_URL', 'NATS_NKEY_SEED', 'NATS_SEED_WEBHOOKS', 'SVC_DATA_DIR'])(
  'what %s says is for the stack alone, and no service learns it that has no use for it',
  async (name) => {
    vi.stubEnv(name, 'given')
    expect(Object.values((await environmentOfGateway()) ?? {})).not.toContain('given')
  },
)

test('of several gateways the first has the port that was asked for, and each other one its own', async () => {
  const ports = (await gateways('--replicas', 'gateway=3')).map(({ program }) => program.env['PORT'])
  expect(ports[0]).toBe('8080')
  expect(new Set(ports).size).toBe(3)
})
