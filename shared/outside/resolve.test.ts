import { createHook } from 'node:async_hooks'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from 'undici'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createEgress } from './egress.ts'
import { failureOf } from './egress-error.ts'
import { createResolve } from './resolve.ts'

const server = createSocket('udp4')
const dir = mkdtempSync(join(tmpdir(), 'names-'))
const hostsFile = join(dir, 'hosts')
const resolverFile = join(dir, 'resolv.conf')
let address = ''
let asked: string[] = []
/** IPv4 addresses, which alone the server has; `null`: it is silent, 'SERVFAIL': it fails. */
let known: Record<string, string | null> = {}

beforeAll(async () => {
  server.on('message', (question, { port, address: from }) => {
    const answer = answerTo(question)
    if (answer) server.send(answer, port, from)
  })
  server.bind(0, '127.0.0.1')
  await once(server, 'listening')
  address = `127.0.0.1:${server.address().port}`
})
beforeEach(() => {
  asked = []
  known = {}
  writeFileSync(hostsFile, '127.0.0.1 localhost\n')
  writeFileSync(resolverFile, 'nameserver 127.0.0.1\n')
})
afterAll(() => {
  server.close()
  rmSync(dir, { recursive: true })
})

function answerTo(question: Buffer): Buffer | null {
  const labels: string[] = []
  let at = 12
  for (let length = question[at++] ?? 0; length > 0; length = question[at++] ?? 0) {
    labels.push(question.toString('latin1', at, at + length))
    at += length
  }
  const name = labels.join('.')
  const isIPv4 = question.readUInt16BE(at) === 1
  if (isIPv4) asked.push(name)
  const found = known[name]
  if (found === null) return null
  const record = [0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...(found ?? '').split('.').map(Number)]
  const fails = found === 'SERVFAIL'
  const answers = isIPv4 && found !== undefined && !fails ? [record] : []
  const flags = [0x81, found === undefined ? 0x83 : fails ? 0x82 : 0x80]
  const head = [...question.subarray(0, 2), ...flags, 0, 1, 0, answers.length, 0, 0, 0, 0]
  return Buffer.from([...head, ...question.subarray(12, at + 4), ...answers.flat()])
}

const resolveBy = (servers: string[], tries = 1) =>
  createResolve({ servers, timeoutMs: 100, tries, hostsFile, resolverFile })

test('a name that no name server knows has no address, and takes none of the threads that other connections need', async () => {
  let threads = 0
  const hook = createHook({ init: (_id, type) => void (type === 'GETADDRINFOREQWRAP' && threads++) }).enable()
  expect(await resolveBy([address])('nobody.evil.example')).toEqual([])
  hook.disable()
  expect([asked, threads]).toEqual([['nobody.evil.example'], 0])
})

test('the hosts file comes before the name servers, as it is at the moment', async () => {
  known = { 'hook.example.com': '192.0.2.9', 'other.example.com': '192.0.2.8' }
  const resolve = resolveBy([address])
  expect(await resolve('hook.example.com')).toEqual(['192.0.2.9'])
  writeFileSync(
    hostsFile,
    '# 10.0.0.9 hook.example.com\n10.0.0.1\tinner Hook.example.com # other.example.com\n\nfd00::1 hook.example.com\nnone hook.example.com\n',
  )
  asked = []
  expect(await resolve('hook.example.com')).toEqual(['10.0.0.1', 'fd00::1'])
  expect(asked).toEqual([])
  expect(await resolve('other.example.com')).toEqual(['192.0.2.8'])
  rmSync(hostsFile)
  expect(await resolve('hook.example.com')).toEqual(['192.0.2.9'])
})

test('a name of which nobody knows is looked for below the search domains, such as a service of Kubernetes', async () => {
  known = { 'app.shop.svc.cluster.local': '10.96.0.7', 'hook.example.com': '192.0.2.9' }
  writeFileSync(
    resolverFile,
    'search old.example\nsearch web.svc.cluster.local cluster.local. # last\noptions ndots:5\n',
  )
  const resolve = resolveBy([address])
  expect(await resolve('app.shop.svc')).toEqual(['10.96.0.7'])
  expect(await resolve('hook.example.com')).toEqual(['192.0.2.9'])
  expect(asked).toEqual([
    'app.shop.svc',
    'app.shop.svc.web.svc.cluster.local',
    'app.shop.svc.cluster.local',
    'hook.example.com',
  ])
})

test.each([
  ['answer for others', 'hook.example.com'],
  ['say of others that they are not there', 'nobody.example.com'],
])('a name about which the name servers are silent, while they %s, is at fault itself', async (_what, other) => {
  known = { 'silent.example.com': null, 'hook.example.com': '192.0.2.9' }
  const resolve = resolveBy([address], 2)
  let isOver = false
  const failure = resolve('silent.example.com').catch((err: unknown) => {
    isOver = true
    return failureOf(err)
  })
  while (!isOver) await resolve(other)
  expect(await failure).toMatchObject({ failure: 'dns_error', isOurs: false })
})

test('a name for which the name servers fail is at fault itself, and not looked for elsewhere', async () => {
  known = { 'broken.example.com': 'SERVFAIL', 'broken.example.com.old.example': '10.0.0.1' }
  writeFileSync(resolverFile, 'search old.example\n')
  const failure = await resolveBy([address])('broken.example.com').catch(failureOf)
  expect(failure).toMatchObject({ failure: 'dns_error', isOurs: false })
})

test('what the name servers said before they fell silent proves nothing against a name', async () => {
  known = { 'silent.example.com': null, 'hook.example.com': '192.0.2.9' }
  const resolve = resolveBy([address], 2)
  const failure = resolve('silent.example.com').catch(failureOf)
  await resolve('hook.example.com')
  expect(await failure).toMatchObject({ failure: 'dns_error', isOurs: true })
})

test('however many name servers are silent, no connection is told to have come too late', async () => {
  known = { 'slow.example.com': null }
  const other = createSocket('udp4').bind(0, '127.0.0.1')
  await once(other, 'listening')
  const servers = [address, `127.0.0.1:${other.address().port}`]
  const egress = createEgress({ allowCidrs: '', resolve: createResolve({ servers, hostsFile, resolverFile }) })
  const failure = await request('https://slow.example.com/', { dispatcher: egress.dispatcher }).catch(failureOf)
  expect(failure).toMatchObject({ failure: 'dns_error', isOurs: true })
  await egress.close()
  other.close()
}, 10_000)

test('name servers that are silent, or not there, are no fault of the name', async () => {
  known = { 'slow.example.com': null }
  const ofSilent = await resolveBy([address])('slow.example.com').catch(failureOf)
  const closed = createSocket('udp4').bind(0, '127.0.0.1')
  await once(closed, 'listening')
  const { port } = closed.address()
  await new Promise<void>((resolve) => closed.close(resolve))
  const ofAway = await resolveBy([`127.0.0.1:${port}`])('slow.example.com').catch(failureOf)
  expect([ofSilent, ofAway]).toMatchObject([
    { failure: 'dns_error', isOurs: true },
    { failure: 'dns_error', isOurs: true },
  ])
})
