import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, test } from 'vitest'
import { repository, type ServiceName } from './stack/options.ts'

const ring = `k1:${Buffer.alloc(32, 1).toString('base64')}`
/** Nobody listens there: a service that takes the settings waits for its servers. */
const nowhere = '127.0.0.1:1'
const fit = {
  PATH: process.env['PATH'],
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
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
  ['gateway', { MEDIA_DIR: '' }],
]

let running: ChildProcess | undefined
afterEach(() => running?.kill('SIGKILL'))

function start(file: string, env: NodeJS.ProcessEnv): ChildProcess {
  running = spawn(process.execPath, [join(repository, file)], { env: { ...fit, ...env } })
  return running
}

describe('a service with a wrong setting ends with 78 and a sentence that names it, and shows no secret', () => {
  test.each(wrong)('%s: %o', async (service, settings) => {
    const child = start(`services/${service}/main.ts`, settings)
    const said = text(child.stderr ?? process.stdin)
    const [code] = await once(child, 'exit')
    const words = await said
    expect([code, words]).toEqual([78, expect.stringContaining('The environment does not fit')])
    for (const name of Object.keys(settings)) expect(words).toContain(name)
    expect(words).not.toMatch(/sec%?ret|\n\s+at /)
  })
})

test('the migrations name a wrong address, too', async () => {
  const child = start('deploy/migrate.ts', { DATABASE_URL: 'postgres://owner:sec%ret@127.0.0.1/messaging' })
  expect(await text(child.stderr ?? process.stdin)).toMatch(/^DATABASE_URL must be such as postgres:/)
})

test('a setting that is empty is one that is not set', async () => {
  const empty = ['UPSTREAM_PROXY_URL', 'EGRESS_PROXY_URL', 'OTEL_EXPORTER_OTLP_ENDPOINT', 'NATS_REPLICAS', 'LOG_LEVEL']
  const child = start('services/messaging/main.ts', {
    ...Object.fromEntries(empty.map((name) => [name, ''])),
    NATS_URL: '',
  })
  const words = await text(child.stderr ?? process.stdin)
  expect(words).toContain('NATS_URL')
  for (const name of empty) expect(words).not.toContain(name)
})
