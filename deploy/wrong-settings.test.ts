import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { repository, type ServiceName } from './stack/options.ts'

const ring = `k1:${Buffer.alloc(32, 1).toString('base64')}`
/** Nobody listens there: a service that takes the settings waits for its servers. */
const nowhere = '127.0.0.1:1'
const fit = {
  NATS_URL: `nats://${nowhere}`,
  DATABASE_URL: `postgres://svc:secret@${nowhere}/messaging`,
  REDIS_URL: `redis://${nowhere}`,
  PUBLIC_URL: 'https://messages.example',
  SEAL_KEYS: ring,
  CURSOR_KEYS: ring,
  UPSTREAM_APP_ID: '1',
  UPSTREAM_APP_SECRET: 'secret',
  UPSTREAM_VERIFY_TOKEN: 'token',
  MEDIA_DIR: '/nowhere',
}

/** Each of them once went through, or ended the process with a stack that did not name it. */
const wrong: Array<[ServiceName, Record<string, string>]> = [
  ['directory', { DATABASE_URL: 'postgres://svc:sec%ret@127.0.0.1/messaging', NATS_URL: 'nats://127.0.0.1:99999' }],
  ['directory', { DATABASE_URL: 'mysql://svc:secret@127.0.0.1/messaging', NATS_URL: 'http://127.0.0.1:8222' }],
  [
    'platform',
    { DATABASE_URL: 'svc:secret@127.0.0.1', UPSTREAM_BASE_URL: 'graph:443', UPSTREAM_PROXY_URL: 'proxy:3128' },
  ],
  ['webhooks', { EGRESS_ALLOW_CIDRS: '10.0.0.0/99', EGRESS_PROXY_URL: 'proxy:3128' }],
  ['messaging', { UPSTREAM_MEDIA_ORIGINS: 'lookaside', PUBLIC_URL: 'localhost:8080', S3_ENDPOINT: 'minio:9000' }],
  ['messaging', { MEDIA_STORE: 's3' }],
  [
    'gateway',
    { REDIS_URL: 'http://127.0.0.1:6379', PUBLIC_URL: 'ftp://a.example', OTEL_EXPORTER_OTLP_ENDPOINT: 'otel:4318' },
  ],
  ['gateway', { REDIS_URL: 'redis://svc:sec%ret@127.0.0.1' }],
  ['gateway', { REDIS_URL: 'redis://svc:sec#ret@127.0.0.1' }],
  ['gateway', { REDIS_URL: 'rediss://:secret@127.0.0.1/limits' }],
  ['directory', { NATS_URL: 'nats://svc:7secret@127.0.0.1:4222' }],
  ['directory', { NATS_URL: 'nats://127.0.0.1:4222,nats://secret@127.0.0.1:4223' }],
  ['gateway', { MEDIA_DIR: '' }],
  ['gateway', { UPSTREAM_API_VERSION: '23', UPSTREAM_APP_ID: 'our app' }],
  ['gateway', { UPSTREAM_VERIFY_TOKEN: ' ', UPSTREAM_APP_SECRET: '\t', REDIS_URL: ' ' }],
  ['messaging', { MEDIA_DIR: ' ' }],
]

/** What is said of some of them, to the word. */
const words: Array<[ServiceName, Record<string, string>, string]> = [
  [
    'gateway',
    { UPSTREAM_DIALOG_ORIGINS: 'https://www.example.com, example' },
    'UPSTREAM_DIALOG_ORIGINS must be origins such as https://chat.example, separated by commas',
  ],
  [
    'platform',
    { RATE_TIERS: '{"gold":{"write_per_minute":1,"read_per_minute":1}}' },
    'RATE_TIERS must have no other tiers than starter, standard, pro, unlimited',
  ],
  ['platform', { RATE_TIERS: '[]' }, 'RATE_TIERS must be an object, not an array'],
]

afterEach(() => {
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
})

let times = 0

/** Loads a service as its process does, and answers what it says before it ends with that code. A process for each would load it anew. */
async function refusalBy(service: ServiceName, settings: Record<string, string>) {
  for (const [name, value] of Object.entries({ ...fit, ...settings })) vi.stubEnv(name, value)
  let said = ''
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    said += String(text)
    return true
  })
  vi.spyOn(process, 'exit').mockImplementation((code) => {
    throw new Error(`ended with ${code}`)
  })
  // Each time anew: a module is run once.
  const main = import(/* @vite-ignore */ `${join(repository, 'services', service, 'main.ts')}?${times++}`)
  await expect(main).rejects.toThrow('ended with 78')
  return said
}

describe('a service with a wrong setting ends with 78 and a sentence that names it, and shows no secret', () => {
  test.each(wrong)('%s: %o', async (service, settings) => {
    const said = await refusalBy(service, settings)
    expect(said).toContain('Wrong settings in the environment:')
    for (const name of Object.keys(settings)) expect(said).toContain(name)
    expect(said).not.toMatch(/sec%?ret|\n\s+at /)
  })
})

test.each(words)('%s says of %o what is allowed', async (service, settings, sentence) => {
  expect(await refusalBy(service, settings)).toBe(`Wrong settings in the environment:\n✖ ${sentence}\n`)
})

test('the migrations name a wrong address, too', () => {
  const env = { ...process.env, DATABASE_URL: 'postgres://owner:sec%ret@127.0.0.1/messaging' }
  const { status, stderr } = spawnSync(process.execPath, [join(repository, 'deploy/migrate.ts')], {
    env,
    encoding: 'utf8',
  })
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^DATABASE_URL must look like postgres:/)])
})

test.each(['deploy/migrate.ts', 'deploy/provision.ts'])(
  '%s does nothing for somebody who expects less of it',
  (program) => {
    const env = { ...process.env, DATABASE_URL: 'postgres://owner@127.0.0.1:1/x', NATS_URL: 'nats://127.0.0.1:1' }
    const { status, stderr } = spawnSync(process.execPath, [join(repository, program), '--dry-run'], {
      env,
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^"--dry-run" means nothing here/)])
  },
)

test.each(['', ' '])('a setting that is %j is one that is not set', async (nothing) => {
  const empty = ['UPSTREAM_PROXY_URL', 'EGRESS_PROXY_URL', 'OTEL_EXPORTER_OTLP_ENDPOINT', 'NATS_REPLICAS', 'LOG_LEVEL']
  const said = await refusalBy('messaging', {
    ...Object.fromEntries(empty.map((name) => [name, nothing])),
    NATS_URL: '',
  })
  expect(said).toContain('NATS_URL')
  for (const name of empty) expect(said).not.toContain(name)
})
