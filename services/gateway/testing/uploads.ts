import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { Input } from '@app/shared/api/contract.ts'
import { serve, type Serving } from '@app/shared/bus/rpc.ts'
import { openUpload, uploadMedia } from '@app/shared/contracts/media.ts'
import { newFileKey } from '@app/shared/store/store.ts'
import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import type { TestGateway } from './gateway.ts'
import { gatewayWithKey } from './gateway-with-key.ts'

export const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

/** The number that uploads are for. */
export const phone = '106540352242922'

export interface Part {
  bytes: Buffer
  /** None: null. */
  type?: string | null
  filename?: string | null
  /** The field `type`. */
  said?: string
  /** What stands behind it. */
  tail?: string
}

export function formOf({ bytes, type = 'image/png', filename = 'a.png', said, tail = '--xxBOUNDARYxx--\r\n' }: Part) {
  const boundary = 'xxBOUNDARYxx'
  const head =
    (said === undefined ? '' : `--${boundary}\r\nContent-Disposition: form-data; name="type"\r\n\r\n${said}\r\n`) +
    `--${boundary}\r\nContent-Disposition: form-data; name="file"${filename === null ? '' : `; filename="${filename}"`}\r\n` +
    `${type === null ? '' : `Content-Type: ${type}\r\n`}\r\n`
  const body = Buffer.concat([Buffer.from(head), bytes, Buffer.from(`\r\n${tail}`)])
  return { body, headers: { 'content-type': `multipart/form-data; boundary=${boundary}` } }
}

/** A gateway for the tests of a file, whose messaging takes uploads, and the key of who has the number; there once they run. */
export function gatewayWithUploads() {
  const it = gatewayWithKey(phone)
  /** What messaging was told of, of each test. */
  const uploads: Input<typeof uploadMedia>['body'][] = []
  let messaging: Serving
  beforeAll(async () => {
    messaging = await serveUploads(it.gateway, uploads)
  })
  afterAll(() => messaging.stop())
  beforeEach(() => {
    uploads.length = 0
  })
  return Object.assign(it, {
    uploads,
    upload: (part: Part, headers = {}) => {
      const { body, headers: own } = formOf(part)
      return it.gateway.ask(`/v1/${phone}/media`, { key: it.key, body, headers: { ...own, ...headers } })
    },
    /** An upload whose body the test writes by itself. */
    begin: (apiKey: string, part: Part, more: Record<string, string> = {}) =>
      beginUpload(it.gateway, apiKey, part, more),
    /** Everything that lies in the store. */
    stored: () =>
      readdirSync(it.gateway.mediaDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()),
    unfinished: () => readdirSync(join(it.gateway.mediaDir, '.unfinished')),
  })
}

const serveUploads = ({ peer }: TestGateway, uploads: Input<typeof uploadMedia>['body'][]) =>
  serve(
    { ...peer, name: 'messaging' },
    { openUpload, uploadMedia },
    {
      openUpload: () => Promise.resolve({ file_key: newFileKey() }),
      uploadMedia(_app, { body }) {
        uploads.push(body)
        const { mime_type, size, sha256 } = body
        const expires_at = new Date().toISOString()
        return Promise.resolve({ id: newId('med'), object: 'media', mime_type, size, sha256, expires_at })
      },
    },
  )

function beginUpload({ url }: TestGateway, apiKey: string, part: Part, more: Record<string, string>) {
  const { body, headers } = formOf(part)
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  let answer = ''
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
  const lines = Object.entries({
    ...headers,
    ...more,
    'content-length': body.length,
    authorization: `Bearer ${apiKey}`,
  })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.write(`POST /v1/${phone}/media HTTP/1.1\r\nhost: x\r\n${head}\r\n`)
  return { socket, body, answer: () => answer }
}
