import { expect, test } from 'vitest'
import { dataDirOf, helpFor, readOptions, repository } from './options.ts'

test('starts one of each on port 8080 with its data in the repository, unless told otherwise', () => {
  expect(readOptions([], {})).toEqual({
    dataDir: `${repository}.local`,
    port: 8080,
    replicas: { gateway: 1, messaging: 1, directory: 1, platform: 1, webhooks: 1 },
    natsReplicas: undefined,
    quiet: false,
  })
})

test('takes replicas by service', () => {
  const { replicas, quiet } = readOptions(['--replicas', 'messaging=2,webhooks=3', '--quiet'], {})
  expect(replicas).toMatchObject({ gateway: 1, messaging: 2, webhooks: 3 })
  expect(quiet).toBe(true)
})

test('takes replicas that are given one by one', () => {
  const { replicas } = readOptions(['--replicas', 'messaging=2', '--replicas=webhooks=3'], {})
  expect(replicas).toMatchObject({ messaging: 2, webhooks: 3 })
})

test('makes the data folder absolute', () => {
  expect(dataDirOf({ SVC_DATA_DIR: 'somewhere' })).toBe(`${process.cwd()}/somewhere`)
})

test.each([
  'mesaging=2',
  'messaging',
  'messaging=0',
  'messaging=-1',
  'messaging=17',
  'messaging=x',
  'messaging=1=2',
  '',
  'messaging=2,',
])('refuses "%s" as replicas and says which services there are', (replicas) => {
  expect(() => readOptions(['--replicas', replicas], {})).toThrow('Services: gateway, messaging')
})

test.each([
  ['--replicas', 'messaging=2,messaging=3'],
  ['--replicas', 'messaging=2', '--replicas=messaging=2'],
])('refuses replicas of a service that it is told twice, instead of forgetting one: %j', (...args) => {
  expect(() => readOptions(args, {})).toThrow('--replicas names messaging more than once.')
})

test.each(['0', '65536', 'http', '80.5'])('refuses port %s', (port) => {
  expect(() => readOptions([], { PORT: port })).toThrow('PORT must be 1 to 65535')
})

test.each(['0', '6', 'three'])('refuses %s copies of the stream', (copies) => {
  expect(() => readOptions([], { NATS_REPLICAS: copies })).toThrow(`NATS_REPLICAS must be 1 to 5, and is "${copies}".`)
})

test.each(['--help', '-h'])('%s tells of every option', (word) => {
  expect(helpFor([word])).toMatch(/--replicas.*--quiet.*PORT.*SVC_DATA_DIR.*DATABASE_URL/s)
  expect(helpFor(['--quiet'])).toBeNull()
})

test('names an option that it does not know', () => {
  expect(() => readOptions(['--replica', 'x'], {})).toThrow("Unknown option '--replica'")
  expect(() => readOptions(['--port', '8090'], {})).toThrow('PORT and other settings are in the environment')
})
