import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { AwsV4Signer } from 'aws4fetch'
import { Agent, type Dispatcher, request } from 'undici'
import { askPatiently } from './ask-patiently.ts'
import type { Kept, Store } from './store.ts'

export interface S3Options {
  bucket: string
  region: string
  /** An origin; the bucket is the first part of the path, which every compatible server understands. */
  endpoint: string
  accessKeyId: string
  secretAccessKey: string
  sessionToken: string | undefined
}

/** The least size of a part but the last; a file in the making holds one of them in memory. */
const partBytes = 5 * 1024 * 1024
const firstBytes = 128 * 1024
const connectTimeoutMs = 3_000
const answerTimeoutMs = 30_000

interface Call {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  fileKey: string
  query?: Record<string, string>
  headers?: Record<string, string>
  body?: Buffer
}

type Ask = (call: Call) => Promise<Dispatcher.ResponseData>

/** Files in a bucket of S3, or of a server that speaks its API: some plain signed requests, large files in parts. */
export function s3Store(options: S3Options): Store {
  const agent = new Agent({ connect: { timeout: connectTimeoutMs }, bodyTimeout: answerTimeoutMs })
  // All of them can be repeated: an upload that was begun twice is ended once, and the bucket's rule ends the other.
  const ask: Ask = (call) => askPatiently(() => send(options, agent, call))
  return {
    put: (fileKey, bytes) => put(ask, fileKey, bytes),
    async open(fileKey, range) {
      const headers = range && { range: `bytes=${range.start}-${range.end}` }
      const answer = await ask({ method: 'GET', fileKey, ...(headers && { headers }) })
      if (await isAbsent(answer)) return null
      await expectStatus(answer, range ? 206 : 200)
      return answer.body as Readable
    },
    async delete(fileKey) {
      const answer = await ask({ method: 'DELETE', fileKey })
      if (await isAbsent(answer)) return
      await expectStatus(answer, 200, 204)
      await answer.body.dump()
    },
    close: () => agent.close(),
  }
}

async function send(options: S3Options, agent: Agent, { method, fileKey, query, headers, body }: Call) {
  const url = new URL(`${options.endpoint.replace(/\/$/, '')}/${options.bucket}/${fileKey}`)
  for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value)
  const signed = await new AwsV4Signer({
    method,
    url: url.href,
    // The server then refuses bytes that were changed on the way.
    headers: {
      ...headers,
      'x-amz-content-sha256': createHash('sha256')
        .update(body ?? '')
        .digest('hex'),
    },
    accessKeyId: options.accessKeyId,
    secretAccessKey: options.secretAccessKey,
    ...(options.sessionToken !== undefined && { sessionToken: options.sessionToken }),
    service: 's3',
    region: options.region,
  }).sign()
  return request(signed.url, {
    dispatcher: agent,
    method,
    headers: Object.fromEntries(signed.headers),
    body: body ?? null,
    headersTimeout: answerTimeoutMs,
  })
}

async function put(ask: Ask, fileKey: string, bytes: AsyncIterable<Uint8Array>): Promise<Kept> {
  const hash = createHash('sha256')
  let size = 0
  let upload: Upload | undefined
  try {
    for await (const part of parts(bytes)) {
      hash.update(part)
      size += part.length
      if (!upload && part.length < partBytes) await putWhole(ask, fileKey, part)
      else await putPart(ask, (upload ??= await beginUpload(ask, fileKey)), part)
    }
    if (size === 0) await putWhole(ask, fileKey, Buffer.alloc(0))
    if (upload) await completeUpload(ask, upload)
  } catch (err) {
    if (upload) await abortUpload(ask, upload)
    throw err
  }
  return { size, sha256: hash.digest('hex') }
}

/**
 * The same bytes in parts of one size, but the last. All of them lie in one buffer, so each must be done with before the
 * next is asked for; it grows with the first one, since most files are small.
 */
async function* parts(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let buffer = Buffer.allocUnsafe(firstBytes)
  let length = 0
  for await (const chunk of bytes) {
    for (let from = 0; from < chunk.length;) {
      const taken = Math.min(chunk.length - from, partBytes - length)
      if (length + taken > buffer.length) buffer = grown(buffer, length + taken)
      buffer.set(chunk.subarray(from, from + taken), length)
      from += taken
      length += taken
      if (length < partBytes) continue
      yield buffer
      length = 0
    }
  }
  if (length > 0) yield buffer.subarray(0, length)
}

function grown(buffer: Buffer, neededBytes: number) {
  const larger = Buffer.allocUnsafe(Math.min(partBytes, Math.max(neededBytes, 2 * buffer.length)))
  buffer.copy(larger)
  return larger
}

async function putWhole(ask: Ask, fileKey: string, body: Buffer) {
  await emptied(await ask({ method: 'PUT', fileKey, body }))
}

interface Upload {
  fileKey: string
  id: string
  etags: string[]
}

async function beginUpload(ask: Ask, fileKey: string): Promise<Upload> {
  const answer = await ask({ method: 'POST', fileKey, query: { uploads: '' } })
  await expectStatus(answer, 200)
  const text = await answer.body.text()
  const id = /<UploadId>([^<]+)<\/UploadId>/.exec(text)?.[1]
  if (id === undefined) throw new Error('S3 began an upload without an id')
  return { fileKey, id, etags: [] }
}

async function putPart(ask: Ask, { fileKey, id, etags }: Upload, body: Buffer) {
  const query = { partNumber: String(etags.length + 1), uploadId: id }
  const answer = await ask({ method: 'PUT', fileKey, query, body })
  await emptied(answer)
  etags.push(String(answer.headers.etag))
}

async function completeUpload(ask: Ask, { fileKey, id, etags }: Upload) {
  const list = etags.map((etag, n) => `<Part><PartNumber>${n + 1}</PartNumber><ETag>${etag}</ETag></Part>`).join('')
  const body = Buffer.from(`<CompleteMultipartUpload>${list}</CompleteMultipartUpload>`)
  const headers = { 'content-type': 'application/xml' }
  const answer = await ask({ method: 'POST', fileKey, query: { uploadId: id }, headers, body })
  await expectStatus(answer, 200)
  // S3 says 200 before it knows: the body tells.
  const text = await answer.body.text()
  if (!text.includes('<CompleteMultipartUploadResult'))
    throw new Error(`S3 did not complete an upload: ${text.slice(0, 500)}`)
}

/** What cannot be taken back now is left to the bucket's own rule for incomplete uploads. */
async function abortUpload(ask: Ask, { fileKey, id }: Upload) {
  await ask({ method: 'DELETE', fileKey, query: { uploadId: id } })
    .then(({ body }) => body.dump())
    .catch(() => undefined)
}

async function emptied(answer: Dispatcher.ResponseData) {
  await expectStatus(answer, 200)
  await answer.body.dump()
}

/** Whether the file is not there. Of a bucket that is not there, nobody knows what is in it. */
async function isAbsent({ statusCode, body }: Dispatcher.ResponseData) {
  if (statusCode !== 404) return false
  const text = await body.text()
  if (codeIn(text) === 'NoSuchBucket') throw refusal(statusCode, text)
  return true
}

async function expectStatus({ statusCode, body }: Dispatcher.ResponseData, ...expected: number[]) {
  if (!expected.includes(statusCode)) throw refusal(statusCode, await body.text())
}

const codeIn = (text: string) => /<Code>([^<]*)<\/Code>/.exec(text)?.[1]

const refusal = (status: number, text: string) =>
  new Error(`S3 answered ${status}: ${codeIn(text) ?? text.slice(0, 200)}`)
