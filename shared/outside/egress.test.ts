import { createServer, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { readFileSync } from 'node:fs'
import { listen } from '@app/test/listen.ts'
import { request } from 'undici'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createEgress, type Egress } from './egress.ts'
import { failureOf } from './egress-error.ts'
import { toProblem } from '../api/problem.ts'
import type { Resolve } from './resolve.ts'

/** Counts connections on the loopback address, IPv4 and IPv6 on the same port. */
const servers: Server[] = []
let connections = 0
let port = 0

beforeAll(async () => {
  port = await listenAt(
    createServer((_, response) => response.end('inside')),
    '127.0.0.1',
    0,
  )
  await listenAt(
    createServer((_, response) => response.end('inside')),
    '::1',
    port,
  )
})
afterAll(() => servers.forEach((server) => server.close()))
beforeEach(() => {
  connections = 0
})

async function listenAt(server: Server, host: string, wanted: number) {
  servers.push(server)
  server.on('connection', () => connections++)
  await new Promise<void>((resolve) => server.listen(wanted, host, resolve))
  return (server.address() as AddressInfo).port
}

const names: Record<string, string[]> = {
  'public.example.com': ['93.184.216.34'],
  'private.example.com': ['127.0.0.1'],
  'private6.example.com': ['::1'],
  'mapped.example.com': ['::ffff:127.0.0.1'],
  'both.example.com': ['127.0.0.1', '::1'],
  'mixed.example.com': ['93.184.216.34', '127.0.0.1'],
  'metadata.example.com': ['169.254.169.254'],
}

const resolve: Resolve = async (name) =>
  names[name] ?? Promise.reject(Object.assign(new Error(name), { code: 'ENOTFOUND' }))

const egressOf = (allowCidrs: string, answers = resolve) => createEgress({ allowCidrs, resolve: answers })

/** The failure of a call, or the answer's body. */
async function callOf({ dispatcher }: Egress, url: string) {
  try {
    const { body } = await request(url, { dispatcher, method: 'POST', body: 'x' })
    return await body.text()
  } catch (err) {
    return failureOf(err).failure
  }
}

const refusalOf = (egress: Egress, url: string) =>
  egress.checkUrl(url).then(
    () => null,
    (err: unknown) => toProblem(err),
  )

const hosts = [
  '127.0.0.1',
  '2130706433',
  '0x7f000001',
  '0x7f.0x0.0x0.0x1',
  '0177.0.0.1',
  '017700000001',
  '127.1',
  '127.0.1',
  '127.0.0.1.',
  '①②⑦.⓪.⓪.①',
  '１２７.0.0.1',
  '127。0。0。1',
  '0',
  '0.0.0.0',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[0:0:0:0:0:ffff:7f00:0001]',
  '[::127.0.0.1]',
  '[64:ff9b::127.0.0.1]',
  '[64:ff9b:1::7f00:1]',
  '[2002:7f00:1::]',
  '[2001:0:7f00:1::]',
  '[fe80::1]',
  '[fec0::1]',
  '[fd00::1]',
  '[ff02::1]',
  '10.0.0.1',
  '100.64.0.1',
  '169.254.169.254',
  '172.16.0.1',
  '192.168.0.1',
  '192.0.0.8',
  '198.18.0.1',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
  'localhost',
  'LOCALHOST.',
  'localhost..',
  'printer.local..',
  '127.0.0.1..',
  'a.localhost',
  'printer.local',
  'vault.internal',
  'database',
  'private.example.com',
  'private6.example.com',
  'mapped.example.com',
  'mixed.example.com',
  'metadata.example.com',
]

describe('a host that is not public', () => {
  const egress = egressOf('')
  test.each(hosts)('%s is refused when it is given and when it is called', async (host) => {
    for (const scheme of ['http', 'https']) {
      const url = `${scheme}://${host}:${port}/hook`
      expect(await refusalOf(egress, url)).toMatchObject({ failure: 'invalid_field_value', param: 'url' })
      expect(await callOf(egress, url)).toBe('blocked_address')
    }
    expect(connections).toBe(0)
  })

  test('the refusal names the setting, and what it cannot allow, and the same words for every host', async () => {
    const refusals = await Promise.all(hosts.map((host) => refusalOf(egress, `https://${host}:${port}/`)))
    const [message, ...others] = new Set(refusals.map((problem) => problem?.message))
    expect(message).toMatch(/EGRESS_ALLOW_CIDRS, but no name such as localhost: write its address\.$/)
    expect(others).toEqual([])
  })
})

test.each([
  'ftp://public.example.com/',
  'file:///etc/passwd',
  'gopher://public.example.com/',
  'javascript:alert(1)',
  'public.example.com',
  '//public.example.com',
  'https://user@public.example.com/',
  'https://user:password@public.example.com/',
  'https://public.example.com\\@127.0.0.1/',
  'https://public.example.com/\n',
  'https://[fe80::1%25eth0]/',
  'https://public.example.com:99999/',
  `https://${'字'.repeat(400)}.example.com/`,
  'http://public.example.com/',
  'http://93.184.216.34/',
])('%s is refused', async (url) => {
  expect(await refusalOf(egressOf(''), url)).toMatchObject({ failure: 'invalid_field_value', param: 'url' })
})

test.each(['https://public.example.com/my file.pdf', ' https://public.example.com/'])(
  '%j is refused with how a space is written',
  async (url) => {
    const message = 'url must not hold spaces, controls or backslashes: write a space as %20.'
    expect(await refusalOf(egressOf(''), url)).toMatchObject({ message })
  },
)

test.each([
  'https://public.example.com/hook?a=b',
  'https://public.example.com:8443/',
  'https://PUBLIC.example.com./',
  'https://93.184.216.34/',
  'https://[2606:4700::1111]/',
  'https://nobody-has-this-yet.example.com/',
  'https://bücher.example.com/',
])('%s is accepted', async (url) => {
  expect(await refusalOf(egressOf(''), url)).toBeNull()
})

test('a name that the name servers are silent about is accepted after a while', async () => {
  const egress = egressOf('', () => new Promise(() => {}))
  expect(await refusalOf(egress, 'https://slow.example.com/')).toBeNull()
})

test('a name that answers public first and private next is refused at the connection', async () => {
  const answers = [['93.184.216.34'], ['127.0.0.1']]
  const egress = egressOf('', async () => answers.shift() ?? ['127.0.0.1'])
  const url = `https://rebinding.example.com:${port}/`
  expect(await refusalOf(egress, url)).toBeNull()
  expect(await callOf(egress, url)).toBe('blocked_address')
  expect(connections).toBe(0)
})

test('a connection asks for the name once, and goes to what was checked', async () => {
  let asked = 0
  const egress = egressOf('127.0.0.1', async () => [++asked === 1 ? '127.0.0.1' : '127.0.0.2'])
  expect(await callOf(egress, `http://receiver.example.com:${port}/`)).toBe('inside')
  expect(asked).toBe(1)
})

test('a connection that is never idle follows its host to another address within a minute', async () => {
  let asked = 0
  const egress = egressOf('127.0.0.1', async () => [`127.0.0.${++asked}`])
  async function callAfter(ms: number) {
    const now = Date.now()
    const later = vi.spyOn(Date, 'now').mockImplementation(() => now + ms)
    onTestFinished(() => later.mockRestore())
    const answered = await callOf(egress, `http://receiver.example.com:${port}/`)
    later.mockRestore()
    // The connection is free again then.
    await new Promise(setImmediate)
    return answered
  }
  for (const ms of [0, 1_000, 59_000]) expect([await callAfter(ms), asked]).toEqual(['inside', 1])
  expect([await callAfter(61_000), asked]).toEqual(['blocked_address', 2])
})

describe('a network that the operator allows', () => {
  const egress = egressOf('127.0.0.0/8, ::1')
  test.each(['127.0.0.1', '2130706433', '[::1]', '[::ffff:127.0.0.1]', 'private.example.com', 'private6.example.com'])(
    '%s is called, with plain http too',
    async (host) => {
      const url = `http://${host}:${port}/`
      expect(await refusalOf(egress, url)).toBeNull()
      expect(await callOf(egress, url)).toBe('inside')
    },
  )
  test.each(['10.0.0.1', 'mixed.example.com', 'public.example.com', 'localhost', 'a.internal'])(
    'http://%s stays refused',
    async (host) => {
      expect(await refusalOf(egress, `http://${host}:${port}/`)).not.toBeNull()
      expect(await callOf(egress, `http://${host}:${port}/`)).toBe('blocked_address')
    },
  )
  test('a redirect is not followed', async () => {
    const redirecting = createServer((_, response) =>
      response.writeHead(302, { location: `http://127.0.0.1:${port}/` }).end(),
    )
    const from = await listenAt(redirecting, '127.0.0.1', 0)
    const { statusCode } = await request(`http://127.0.0.1:${from}/`, { dispatcher: egress.dispatcher })
    expect([statusCode, connections]).toEqual([302, 1])
  })
})

test('networks that make no sense stop the program with a sentence', () => {
  expect(() => egressOf('10.0.0.0/8, everything')).toThrow(
    'must be networks such as 10.1.0.0/16, separated by commas, not "everything"',
  )
})

const early = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'
const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'

test('five answers may come before the answer', async () => {
  const server = createTcpServer((socket) => socket.once('data', () => socket.end(early.repeat(5) + answer)))
  const url = `http://127.0.0.1:${await listen(server)}/`
  expect(await callOf(egressOf('127.0.0.1'), url)).toBe('ok')
  server.close()
})

describe('failures have names', () => {
  const egress = egressOf('127.0.0.0/8')
  test('of a name that is not there', async () => {
    expect(await callOf(egress, 'https://nobody-has-this-yet.example.com/')).toBe('dns_error')
  })
  test('of a closed port', async () => {
    const closed = createTcpServer()
    const free = await listen(closed)
    await new Promise((resolve) => closed.close(resolve))
    expect(await callOf(egress, `http://127.0.0.1:${free}/`)).toBe('connection_refused')
    expect(await callOf(egressOf('127.0.0.1, ::1'), `http://both.example.com:${free}/`)).toBe('connection_refused')
  })
  test('of a caller’s signal', async () => {
    const silent = createTcpServer(() => {})
    const url = `http://127.0.0.1:${await listen(silent)}/`
    const { dispatcher } = egress
    const failure = await request(url, { dispatcher, signal: AbortSignal.timeout(50) }).catch(failureOf)
    expect(failure).toMatchObject({ failure: 'timeout' })
    silent.close()
  })
  test('of a peer that hangs up', async () => {
    const rude = createTcpServer((socket) => socket.destroy())
    expect(await callOf(egress, `http://127.0.0.1:${await listen(rude)}/`)).toBe('connection_failed')
    rude.close()
  })
  test('of a peer that speaks no HTTP', async () => {
    const other = createTcpServer((socket) => socket.end('220 mail.example.com ESMTP\r\n'))
    expect(await callOf(egress, `http://127.0.0.1:${await listen(other)}/`)).toBe('invalid_response')
    other.close()
  })
  const lengths = 'two Content-Length, or one beside chunks'
  test.each([
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok', lengths],
    [
      'a length beside chunks',
      'HTTP/1.1 200 OK\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
      lengths,
    ],
    [
      'another protocol that nobody asked for',
      'HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n',
      'it changes to another protocol',
    ],
    ['lines without CR', 'HTTP/1.1 200 OK\ncontent-length: 2\n\nok', 'Missing expected CR after response line'],
    [
      'a long head',
      `HTTP/1.1 200 OK\r\n${`x-a: ${'a'.repeat(1_000)}\r\n`.repeat(20)}\r\n`,
      'its head is longer than 16 KiB',
    ],
    ['six answers before the answer', `${early.repeat(6)}${answer}`, 'it sends too many answers before its answer'],
  ])('of a peer whose answer makes no sense, with what is wrong: %s', async (_, bytes, fault) => {
    const other = createTcpServer((socket) => socket.once('data', () => socket.end(bytes)))
    const { dispatcher } = egress
    const failure = await request(`http://127.0.0.1:${await listen(other)}/`, { dispatcher }).catch(failureOf)
    expect(failure).toEqual({
      failure: 'invalid_response',
      message: `The answer was not valid HTTP (${fault}).`,
      isOurs: false,
    })
    other.close()
  })
  test('of a peer that speaks no TLS', async () => {
    expect(await callOf(egress, `https://127.0.0.1:${port}/`)).toBe('tls_error')
  })
})

test('TLS asks for the host of the URL, and an expired certificate is refused', async () => {
  const asked: string[] = []
  const pem = readFileSync(new URL('../../test/expired-certificate.pem', import.meta.url))
  const server = createTlsServer({
    key: pem,
    cert: pem,
    SNICallback(name, callback) {
      asked.push(name)
      callback(null)
    },
  })
  const secure = await listenAt(server, '127.0.0.1', 0)
  const egress = egressOf('127.0.0.1')
  const url = `https://private.example.com:${secure}/`
  expect(await callOf(egress, url)).toBe('tls_error')
  await request(url, { dispatcher: egress.dispatcher, headers: { host: 'other.example.com' } }).catch(() => null)
  // The root's dot is no part of the name that a server is asked by (RFC 6066).
  expect(await callOf(egress, `https://private.example.com.:${secure}/`)).toBe('tls_error')
  expect(await callOf(egress, `https://127.0.0.1:${secure}/`)).toBe('tls_error')
  expect(asked).toEqual(['private.example.com', 'private.example.com', 'private.example.com'])
})

test.each([
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'HOSTNAME_MISMATCH',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_OSSL_EVP_UNSUPPORTED',
  'EPROTO',
  // For clients alone, and signed by what may sign none.
  'INVALID_PURPOSE',
  'INVALID_CA',
  'PATH_LENGTH_EXCEEDED',
])('%s is a failure of TLS, and its owner is told which', (code) => {
  const failure = { failure: 'tls_error', message: `The TLS handshake failed (${code}).` }
  expect(failureOf(Object.assign(new Error('no'), { code }))).toMatchObject(failure)
})

test('a fault of a certificate that has no code is told in words', () => {
  const err = Object.assign(new Error('EE certificate key too weak'), { code: 'UNSPECIFIED' })
  const message = 'The TLS handshake failed (EE certificate key too weak).'
  expect(failureOf(err)).toMatchObject({ failure: 'tls_error', message })
})

// No connection goes to a group of hosts.
test.skipIf(process.platform !== 'linux')(
  'that this host has no way to an address is not held against it',
  async () => {
    const egress = createEgress({ allowCidrs: '224.0.0.0/4', resolve: async () => ['224.0.0.1', '224.0.0.2'] })
    for (const url of ['http://224.0.0.1/', 'http://group.example.com/']) {
      const err: unknown = await request(url, { dispatcher: egress.dispatcher }).catch((caught: unknown) => caught)
      expect(failureOf(err)).toMatchObject({ failure: 'connection_failed', isOurs: true })
    }
    await egress.close()
  },
)

test.each([
  ['EMFILE', '2001:db8::1', true],
  ['EADDRNOTAVAIL', '192.0.2.1', true],
  // Many hosts have IPv4 alone.
  ['EADDRNOTAVAIL', '2001:db8::1', false],
  ['ENETUNREACH', '2001:db8::1', false],
  ['EHOSTUNREACH', '192.0.2.1', false],
])('whether %s of a connection to %s is ours: %s', (code, address, isOurs) => {
  const err = Object.assign(new Error('no'), { code, address })
  expect(failureOf(err)).toMatchObject({ failure: 'connection_failed', isOurs })
  const refused = Object.assign(new Error('no'), { code: 'ECONNREFUSED', address: '192.0.2.2' })
  const all = Object.assign(new AggregateError([refused, err]), { code: 'ECONNREFUSED' })
  expect(failureOf(all)).toMatchObject({ failure: 'connection_refused', isOurs })
})

describe('through a proxy', () => {
  const asked: string[] = []
  const proxy = createServer((incoming, response) => {
    asked.push(incoming.url ?? '')
    response.end('proxied')
  }).on('connect', (incoming, socket) => {
    asked.push(incoming.url ?? '')
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
  })
  let egress: Egress
  beforeAll(async () => {
    const proxyPort = await listenAt(proxy, '127.0.0.1', 0)
    egress = createEgress({ allowCidrs: '10.0.0.0/8', proxyUrl: `http://127.0.0.1:${proxyPort}`, resolve })
  })
  beforeEach(() => {
    asked.length = 0
  })

  /** Through a proxy at that port, until the test is over. */
  function callAt(proxyPort: number) {
    const through = createEgress({ allowCidrs: '10.0.0.0/8', proxyUrl: `http://127.0.0.1:${proxyPort}`, resolve })
    onTestFinished(() => through.close())
    return (url: string) => request(url, { dispatcher: through.dispatcher }).then(() => null, failureOf)
  }

  test('it is asked by name, and its refusal is a failure', async () => {
    expect(await callOf(egress, 'http://10.0.0.1/')).toBe('proxied')
    expect(await callOf(egress, 'https://private.example.com/')).toBe('connection_failed')
    expect(asked).toEqual(['http://10.0.0.1/', 'private.example.com:443'])
  })
  test.each(['https://private.example.com/', 'http://10.0.0.1/'])(
    'one that is away is a failure of ours, not of %s',
    async (url) => {
      const closed = createServer()
      const closedPort = await listenAt(closed, '127.0.0.1', 0)
      await new Promise((resolve) => closed.close(resolve))
      expect(await callAt(closedPort)(url)).toMatchObject({ failure: 'connection_failed', isOurs: true })
    },
  )
  const faulty = async (listener: (socket: Socket) => void) => callAt(await listen(createTcpServer(listener)))
  const saying = (words: string) =>
    faulty((socket) => void socket.on('error', () => {}).once('data', () => socket.end(words)))

  test.each([
    ['that does not take our password', 'HTTP/1.1 407 Who?\r\nContent-Length: 2\r\n\r\nno', true],
    ['that hangs up', '', true],
    ['that is none', 'SSH-2.0-OpenSSH\r\n', true],
    ['that forbids', 'HTTP/1.1 403 Forbidden\r\n\r\n', false],
    ['that cannot get there', 'HTTP/1.1 503 Service Unavailable\r\n\r\n', false],
  ])('of a tunnel, one %s', async (_, words, isOurs) => {
    const call = await saying(words)
    expect(await call('https://shop.example.com/')).toMatchObject({ failure: 'connection_failed', isOurs })
  })
  test('one that does not take our password for plain http is a failure of ours, too, and one alone', async () => {
    const call = await saying('HTTP/1.1 407 Who?\r\nContent-Length: 2\r\n\r\nno')
    expect(await call('http://10.0.0.1/')).toMatchObject({ failure: 'connection_failed', isOurs: true })
  })
  test('one that says nothing is a failure of ours from the second host on; while it speaks of others, it is theirs', async () => {
    const call = await faulty((socket) =>
      socket.once('data', (asked) => {
        if (String(asked).includes('there')) socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
      }),
    )
    const hosts = ['one', 'two', 'three'].map((name) => `https://${name}.example.com/`)
    const silent = await Promise.all(hosts.map(call))
    expect(silent.map((one) => one?.failure)).toEqual(hosts.map(() => 'timeout'))
    expect(silent.filter((one) => !one?.isOurs)).toHaveLength(1)
    const later = Promise.all(hosts.map(call))
    await setTimeout(2_000)
    await call('https://there.example.com/')
    expect((await later).map((one) => one?.isOurs)).toEqual([false, false, false])
  }, 15_000)
  test('no public name is asked of it in plain text, unless the operator allows networks', async () => {
    const { port: proxyPort } = proxy.address() as AddressInfo
    const secureOnly = createEgress({ allowCidrs: '', proxyUrl: `http://127.0.0.1:${proxyPort}`, resolve })
    expect(await callOf(secureOnly, 'http://public.example.com/')).toBe('blocked_address')
    expect(asked).toEqual([])
    expect(await callOf(egress, 'http://public.example.com/')).toBe('proxied')
    await secureOnly.close()
  })
  test('what can be told from the URL never reaches it', async () => {
    for (const host of [
      '127.0.0.1',
      '127.0.0.1..',
      '[::1]',
      '2130706433',
      'localhost',
      'localhost..',
      'vault.internal..',
    ]) {
      expect(await callOf(egress, `https://${host}/`)).toBe('blocked_address')
    }
    expect(asked).toEqual([])
  })
})
