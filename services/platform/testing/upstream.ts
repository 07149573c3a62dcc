import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { listen } from '@app/test/listen.ts'

/** An answer: a status and a body, which is sent as it is when it is text, when `after` has come; or nothing at all. */
export type UpstreamAnswer =
  | { status?: number; body: unknown; location?: string; after?: Promise<void> }
  | 'silence'
  | 'hang up'

export interface TestUpstream {
  url: string
  /** Requests as they came, such as `GET /v23.0/106?fields=id` with their `authorization`. */
  asked: { line: string; authorization: string | undefined }[]
  /** What is answered to a path below the version, with its query or without; what is not named is unknown to it. */
  answers: Map<string, UpstreamAnswer>
  close: () => Promise<void>
}

/** Stands in for the platform's management API. */
export async function startTestUpstream(): Promise<TestUpstream> {
  const asked: TestUpstream['asked'] = []
  const answers: TestUpstream['answers'] = new Map()
  const server = createServer((request, response) => {
    const { method, url = '', headers } = request
    asked.push({ line: `${method} ${url}`, authorization: headers.authorization })
    const asking = url.replace(/^\/v[\d.]+/, '')
    const given = answers.get(asking) ?? answers.get(asking.replace(/\?.*/, ''))
    void answer(request, response, given ?? { status: 400, body: unknownObject })
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    answers,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** What the platform says of an object that it does not know or show. */
export const unknownObject = { error: { message: 'Unsupported get request.', code: 100, error_subcode: 33 } }

async function answer(request: IncomingMessage, response: ServerResponse, given: UpstreamAnswer) {
  if (given === 'silence') return
  if (given === 'hang up') {
    request.socket.destroy()
    return
  }
  await given.after
  const text = typeof given.body === 'string' ? given.body : JSON.stringify(given.body)
  response.setHeader('content-type', 'application/json')
  if (given.location !== undefined) response.setHeader('location', given.location)
  response.writeHead(given.status ?? 200).end(text)
}
