import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testBucket } from '@app/test/s3.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createStore, newFileKey, type Store } from './store.ts'

const folder = mkdtempSync(join(tmpdir(), 'store-'))
afterAll(() => rmSync(folder, { recursive: true }))

const env = { S3_REGION: 'us-east-1', MEDIA_STORE: 'folder', MEDIA_DIR: folder } as const

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
      sha256: createHash('sha256').update(bytes).digest('hex'),
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

test('an upload that S3 says at its very end it did not complete is no file, and is taken back', async () => {
  const asked: string[] = []
  const server = createServer((request, response) => {
    const step = `${request.method} ${new URL(request.url ?? '', 'http://s3').search}`
    asked.push(step)
    request.resume().on('end', () => {
      if (step === 'POST ?uploads=') response.end('<Result><UploadId>1</UploadId></Result>')
      else if (step.startsWith('POST')) response.end('<Error><Code>InternalError</Code></Error>')
      else response.writeHead(step.startsWith('DELETE') ? 204 : 200, { etag: '"e"' }).end()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const store = createStore({
    MEDIA_STORE: 's3',
    S3_REGION: 'us-east-1',
    S3_BUCKET: 'files',
    S3_ENDPOINT: `http://127.0.0.1:${port}`,
    S3_ACCESS_KEY_ID: 'id',
    S3_SECRET_ACCESS_KEY: 'secret',
  })
  await expect(store.put(newFileKey(), inChunks(Buffer.alloc(6_000_000)))).rejects.toThrow('InternalError')
  expect(asked).toEqual([
    'POST ?uploads=',
    'PUT ?partNumber=1&uploadId=1',
    'PUT ?partNumber=2&uploadId=1',
    'POST ?uploadId=1',
    'DELETE ?uploadId=1',
  ])
  await store.close()
  server.close()
})

test('an environment that does not fit is told in a sentence', () => {
  expect(() => createStore({ MEDIA_STORE: 's3', S3_REGION: 'us-east-1' })).toThrow('S3_BUCKET must be set')
})
