import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { wholeBody } from '@app/test/whole-body.ts'

/** A request for a file that the platform got. */
interface FileCall {
  method: string
  path: string
  authorization: string | undefined
  contentType: string | undefined
  userAgent: string | undefined
  body: Buffer
}

type Answer = (call: FileCall, response: ServerResponse, origin: string) => void

/** The platform's files: what customers have sent, and what we upload. */
export interface MediaPlatform {
  calls: FileCall[]
  /** What customers have sent, by the platform's id. */
  sent: Map<string, { bytes: Buffer; mimeType: string }>
  /** Answers in its place from now on; null: it answers itself again. */
  answerWith: (next: Answer | null) => void
  /** As it answers by itself. */
  usual: Answer
  answer: (request: IncomingMessage, response: ServerResponse) => void
}

export const json = (response: ServerResponse, value: unknown, status = 200) =>
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))

/** The platform's answer for an id that it does not have, or does not show to this token. */
export const unknownObject = {
  error: { code: 100, error_subcode: 33, message: 'Unsupported get request', fbtrace_id: 'A' },
}

export function createMediaPlatform(): MediaPlatform {
  const calls: FileCall[] = []
  const sent: MediaPlatform['sent'] = new Map()
  let override: Answer | null = null

  function usual({ method, path, userAgent }: FileCall, response: ServerResponse, origin: string) {
    if (method === 'POST') return json(response, { id: `10${calls.length}` })
    const [, area = '', id = ''] = path.split('/')
    const file = sent.get(id)
    if (!file) return json(response, unknownObject, 400)
    // The host of the platform's files answers nobody who does not say what it is.
    if (area === 'files' && userAgent === undefined) return response.writeHead(400).end()
    if (area === 'files') return response.writeHead(200, { 'content-type': file.mimeType }).end(file.bytes)
    const sha256 = createHash('sha256').update(file.bytes).digest('hex')
    const url = `${origin}/files/${id}`
    return json(response, { id, url, mime_type: file.mimeType, sha256, file_size: String(file.bytes.length) })
  }

  return {
    calls,
    sent,
    usual,
    answerWith(next) {
      override = next
    },
    answer(request, response) {
      void wholeBody(request).then((body) => {
        const { method = '', url = '', headers } = request
        const [path = ''] = url.split('?')
        const call = {
          method,
          path,
          authorization: headers.authorization,
          contentType: headers['content-type'],
          userAgent: headers['user-agent'],
          body,
        }
        calls.push(call)
        const answer = override ?? usual
        answer(call, response, `http://${headers.host}`)
      })
    },
  }
}
