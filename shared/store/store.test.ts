import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listen } from '@app/test/listen.ts'
import { testBucket } from '@app/test/s3.ts'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createStore, newFileKey, type Store } from './store.ts'

const folder = mkdtempSync(join(tmpdir(), 'store-'))
afterAll(() => rmSync(folder, { recursive: true }))

const env = { S3_REGION: 'us-east-1', MEDIA_STORE: 'folder', MEDIA_DIR: folder } as const

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

async function* inChunks(bytes: Buffer, size = 60_000): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
}

async function contentsOf(opened: Promise<AsyncIterable<Uint8Array> | null>) {
  const bytes = await opened
  if (!bytes) return null
  const chunks: Uint8Array[] = []
  for await (const chunk of bytes) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** What any store must do; a real server of S3 is used when the environment names one. */
const stores: Array<[string, () => Store]> = [['a folder', () => createStore(env)]]
const bucket = testBucket()
if (bucket) stores.push(['S3', () => createStore(bucket)])

describe.each(stores)('%s', (_name, create) => {
  let store: Store
  beforeAll(() => {
    store = create()
  })
  afterAll(() => store.close())

  test.each([0, 1, 70_000, 5 * 1024 * 1024, 12_345_678])('gives back %i bytes, with their hash', async (size) => {
    const bytes = randomBytes(size)
    const key = newFileKey()
    expect(await store.put(key, inChunks(bytes))).toEqual({
      size,
      sha256: sha256(bytes),
    })
    expect((await contentsOf(store.open(key)))?.equals(bytes)).toBe(true)
  })

  test('gives a part, both ends included', async () => {
    const key = newFileKey()
    await store.put(key, inChunks(Buffer.from('0123456789')))
    expect(String(await contentsOf(store.open(key, { start: 2, end: 4 })))).toBe('234')
    expect(String(await contentsOf(store.open(key, { start: 9, end: 9 })))).toBe('9')
  })

  test('holds nothing of bytes that fail, however many came', async () => {
    async function* failing() {
      yield* inChunks(randomBytes(6_000_000))
      throw new Error('the sender is gone')
    }
    const key = newFileKey()
    await expect(store.put(key, failing())).rejects.toThrow('the sender is gone')
    expect(await store.open(key)).toBeNull()
  })

  test('deletes, and does not mind that nothing is there', async () => {
    const key = newFileKey()
    await store.put(key, inChunks(Buffer.from('x')))
    await store.delete(key)
    await store.delete(key)
    expect(await store.open(key)).toBeNull()
  })
})

test('a folder holds nothing unfinished, and takes no key that leads elsewhere', async () => {
  expect(readdirSync(join(folder, '.unfinished'))).toEqual([])
  const store = createStore(env)
  await expect(store.open('../../etc/passwd')).rejects.toThrow('no key of a file')
})

test('a folder loses what a crash left unfinished a day ago, and nothing that is being written', async () => {
  const own = mkdtempSync(join(tmpdir(), 'store-'))
  onTestFinished(() => rmSync(own, { recursive: true }))
  mkdirSync(join(own, '.unfinished'))
  for (const [name, hours] of [['old', 25] as const, ['young', 23] as const]) {
    const path = join(own, '.unfinished', name)
    const at = new Date(Date.now() - hours * 3_600_000)
    writeFileSync(path, 'half')
    utimesSync(path, at, at)
  }
  await createStore({ ...env, MEDIA_DIR: own }).close()
  expect(readdirSync(join(own, '.unfinished'))).toEqual(['young'])
})

test('a folder says that a file cannot be read, and not that there is none', async () => {
  const own = mkdtempSync(join(tmpdir(), 'store-'))
  onTestFinished(() => rmSync(own, { recursive: true }))
  const key = newFileKey()
  writeFileSync(join(own, key.slice(0, 2)), '')
  await expect(createStore({ ...env, MEDIA_DIR: own }).open(key)).rejects.toThrow('ENOTDIR')
})

test('a folder has written a file through, with its name and the folder of that, before it says so', async () => {
  const own = mkdtempSync(join(tmpdir(), 'store-'))
  onTestFinished(() => rmSync(own, { recursive: true }))
  const handle = await open(own)
  const written = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'sync')
  await handle.close()
  onTestFinished(() => written.mockRestore())
  const store = createStore({ ...env, MEDIA_DIR: own })
  const key = newFileKey()
  await store.put(key, inChunks(Buffer.from('x')))
  expect(written).toHaveBeenCalledTimes(3)
  await store.put(`${key.slice(0, 2)}/${'0'.repeat(32)}`, inChunks(Buffer.from('x')))
  expect(written).toHaveBeenCalledTimes(5)
})

/** A server that answers as S3 does, or does not. A step is a method with what stands behind the path. */
async function startS3(answer: (step: string, response: ServerResponse, body: Buffer) => void, settings = {}) {
  const asked: { step: string; path: string; headers: IncomingHttpHeaders }[] = []
  const server = createServer((request, response) => {
    const { pathname, search } = new URL(request.url ?? '', 'http://s3')
    const step = `${request.method} ${search}`
    asked.push({ step, path: pathname, headers: request.headers })
    void contentsOf(Promise.resolve(request)).then((body) => answer(step, response, body ?? Buffer.alloc(0)))
  })
  const port = await listen(server)
  const store = createStore({
    MEDIA_STORE: 's3',
    S3_REGION: 'us-east-1',
    S3_BUCKET: 'files',
    S3_ENDPOINT: `http://127.0.0.1:${port}/`,
    S3_ACCESS_KEY_ID: 'id',
    S3_SECRET_ACCESS_KEY: 'secret',
    ...settings,
  })
  onTestFinished(async () => {
    await store.close()
    server.close()
  })
  return { store, asked }
}

test('a large file of S3 is made of all of its parts in their order, each signed with its own hash', async () => {
  const parts: Buffer[] = []
  let completed = ''
  const { store, asked } = await startS3((step, response, body) => {
    if (step === 'POST ?uploads=') response.end('<Result><UploadId>1</UploadId></Result>')
    else if (step.startsWith('PUT')) response.setHeader('etag', `"${parts.push(body)}"`).end()
    else {
      completed = String(body)
      response.end('<CompleteMultipartUploadResult/>')
    }
  })
  const bytes = randomBytes(11_000_000)
  expect(await store.put(newFileKey(), inChunks(bytes))).toEqual({ size: bytes.length, sha256: sha256(bytes) })
  expect(parts.map(({ length }) => length)).toEqual([5_242_880, 5_242_880, 514_240])
  expect(Buffer.concat(parts).equals(bytes)).toBe(true)
  const puts = asked.filter(({ step }) => step.startsWith('PUT'))
  expect(puts.map(({ step }) => step)).toEqual([1, 2, 3].map((n) => `PUT ?partNumber=${n}&uploadId=1`))
  expect(puts.map(({ headers }) => headers['x-amz-content-sha256'])).toEqual(parts.map(sha256))
  const list = [1, 2, 3].map((n) => `<Part><PartNumber>${n}</PartNumber><ETag>"${n}"</ETag></Part>`).join('')
  expect(completed).toBe(`<CompleteMultipartUpload>${list}</CompleteMultipartUpload>`)
})

test('an upload that S3 says at its very end it did not complete is no file, and is taken back', async () => {
  const { store, asked } = await startS3((step, response) => {
    if (step === 'POST ?uploads=') response.end('<Result><UploadId>1</UploadId></Result>')
    else if (step.startsWith('POST')) response.end('<Error><Code>InternalError</Code></Error>')
    else response.writeHead(step.startsWith('DELETE') ? 204 : 200, { etag: '"e"' }).end()
  })
  await expect(store.put(newFileKey(), inChunks(Buffer.alloc(6_000_000)))).rejects.toThrow('InternalError')
  expect(asked.map(({ step }) => step)).toEqual([
    'POST ?uploads=',
    'PUT ?partNumber=1&uploadId=1',
    'PUT ?partNumber=2&uploadId=1',
    'POST ?uploadId=1',
    'DELETE ?uploadId=1',
  ])
})

test('of an upload that S3 does not let be taken back it is told why it failed', async () => {
  const { store } = await startS3((step, response) => {
    if (step === 'POST ?uploads=') response.end('<Result><UploadId>1</UploadId></Result>')
    else if (step.startsWith('DELETE')) response.destroy()
    else response.writeHead(503).end('<Error><Code>SlowDown</Code></Error>')
  })
  await expect(store.put(newFileKey(), inChunks(Buffer.alloc(6_000_000)))).rejects.toThrow('SlowDown')
})

test('a file of which S3 says for a moment that it cannot is stored, read and deleted', async () => {
  let stored = Buffer.alloc(0)
  const refused = new Map<string, number>()
  const { store } = await startS3((step, response, body) => {
    const times = (refused.get(step) ?? 0) + 1
    refused.set(step, times)
    if (times < 2) response.writeHead(503).end('<Error><Code>SlowDown</Code></Error>')
    else if (step === 'GET ') response.end(stored)
    else {
      stored = Buffer.concat([stored, step.startsWith('PUT') ? body : Buffer.alloc(0)])
      response.setHeader('etag', '"e"')
      response.end(step === 'POST ?uploads=' ? '<UploadId>1</UploadId>' : '<CompleteMultipartUploadResult/>')
    }
  })
  const bytes = randomBytes(6_000_000)
  const key = newFileKey()
  expect(await store.put(key, inChunks(bytes))).toMatchObject({ size: bytes.length })
  expect((await contentsOf(store.open(key)))?.equals(bytes)).toBe(true)
  await store.delete(key)
  expect([...refused.values()]).toEqual([2, 2, 2, 2, 2, 2])
})

test('a connection that S3 closes as a request comes is no failure', async () => {
  let asked = 0
  const { store } = await startS3((_step, response) => (++asked === 1 ? response.destroy() : response.end()))
  expect(await store.put(newFileKey(), inChunks(Buffer.from('x')))).toMatchObject({ size: 1 })
  expect(asked).toBe(2)
})

test('what S3 refuses for good is not asked again', async () => {
  const { store, asked } = await startS3((_step, response) => response.writeHead(403).end())
  await expect(store.put(newFileKey(), inChunks(Buffer.from('x')))).rejects.toThrow('S3 answered 403')
  expect(asked).toHaveLength(1)
})

test('a file of S3 that is given whole is not taken for the part that was asked for', async () => {
  const { store } = await startS3((_step, response) => response.end('0123456789'))
  await expect(store.open(newFileKey(), { start: 2, end: 4 })).rejects.toThrow('S3 answered 200')
})

test('a server that calls it missing what it has deleted already has deleted it; one that fails has not', async () => {
  let status = 404
  const { store } = await startS3((_step, response) => response.writeHead(status).end())
  await store.delete(newFileKey())
  status = 500
  await expect(store.delete(newFileKey())).rejects.toThrow('S3 answered 500')
})

test('of a bucket that is not there nothing is said to be missing, or deleted', async () => {
  const error = '<?xml version="1.0"?><Error><Code>NoSuchBucket</Code><BucketName>files</BucketName></Error>'
  const { store } = await startS3((_step, response) => response.writeHead(404).end(error))
  const refusal = 'S3 answered 404: NoSuchBucket'
  await expect(store.open(newFileKey())).rejects.toThrow(refusal)
  await expect(store.open(newFileKey(), { start: 0, end: 9 })).rejects.toThrow(refusal)
  await expect(store.delete(newFileKey())).rejects.toThrow(refusal)
})

test('an empty file is one of S3, too, and is signed with the token of a session', async () => {
  const { store, asked } = await startS3((_step, response) => response.end(), { S3_SESSION_TOKEN: 'of a session' })
  const key = newFileKey()
  async function* nothing() {}
  expect(await store.put(key, nothing())).toMatchObject({ size: 0 })
  const headers = { 'x-amz-security-token': 'of a session', 'content-length': '0' }
  expect(asked).toMatchObject([{ step: 'PUT ', path: `/files/${key}`, headers }])
})

test('an environment that does not fit is told in a sentence', () => {
  expect(() => createStore({ MEDIA_STORE: 's3', S3_REGION: 'us-east-1' })).toThrow('S3_BUCKET must be set')
})
