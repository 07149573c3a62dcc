import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { listen } from '@app/test/listen.ts'
import { wholeBody } from '@app/test/whole-body.ts'

export interface PlatformTemplate {
  id: string
  name: string
  language: string
  status: string
  category: string
  components: Array<Record<string, unknown> & { type: string }>
  parameter_format?: string
  quality_score?: { score: string }
  /** The business account; without one it is in all. */
  account?: string
}

/** A request that the platform got. */
export interface Seen {
  method: string
  path: string
  query: URLSearchParams
  authorization: string
  body: Buffer
}

export type Respond = (request: Seen, response: ServerResponse) => void | Promise<void>

/** The platform's side of templates, as far as its documentation says; a test may answer the next requests in its place. */
export async function startTemplatePlatform() {
  const templates: PlatformTemplate[] = []
  const seen: Seen[] = []
  const instead: Respond[] = []
  let usual: Respond = answer
  const server = createServer((request, response) => {
    void read(request).then(async (one) => {
      seen.push(one)
      await (instead.shift() ?? usual)(one, response)
    })
  })
  let pageSize = 100
  let ids = 1000

  function answer({ method, path, query, body }: Seen, response: ServerResponse): void {
    if (path.includes('/upload:')) return json(response, { h: `4::${body.length}` })
    if (path.endsWith('/uploads')) return json(response, { id: `upload:${query.get('file_length')}?sig=a%2Bb` })
    const account = path.split('/').at(-2) ?? ''
    const ofAccount = templates.filter((one) => (one.account ?? account) === account)
    if (method === 'GET') return list(ofAccount, query, response)
    const input = JSON.parse(body.toString()) as PlatformTemplate
    if (path.endsWith('/message_templates')) return create(ofAccount, { ...input, account }, response)
    const found = templates.find(({ id }) => path.endsWith(`/${id}`))
    if (!found) return refused(response, 100)
    Object.assign(found, input, { status: 'PENDING' })
    json(response, { success: true })
  }

  function create(ofAccount: PlatformTemplate[], input: PlatformTemplate, response: ServerResponse) {
    if (ofAccount.some(({ name, language }) => name === input.name && language === input.language))
      return refused(response, 100, 2388024)
    const made = { ...input, id: String(ids++), status: 'PENDING' }
    templates.push(made)
    json(response, { id: made.id, status: made.status, category: made.category })
  }

  function list(ofAccount: PlatformTemplate[], query: URLSearchParams, response: ServerResponse) {
    const name = query.get('name')
    const all = ofAccount.filter((one) => name === null || one.name.includes(name))
    const from = Number(query.get('after') ?? 0)
    const to = from + pageSize
    const next = to < all.length ? { next: `http://elsewhere.invalid/?after=${to}` } : {}
    json(response, { data: all.slice(from, to), paging: { cursors: { after: String(to) }, ...next } })
  }

  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    templates,
    seen,
    /** Answers the next request in the platform's place. */
    once: (respond: Respond) => void instead.push(respond),
    /** As the platform itself would. */
    answer,
    /** Answers all requests in the platform's place from now on. */
    answerWith: (respond: Respond) => {
      usual = respond
    },
    setPageSize: (size: number) => {
      pageSize = size
    },
    reset() {
      templates.length = 0
      seen.length = 0
      instead.length = 0
      pageSize = 100
    },
    stop: () => server.close().closeAllConnections(),
  }
}

export function json(response: ServerResponse, value: unknown, status = 200) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

interface Refusal {
  status?: number
  sentence?: string
}

function refused(response: ServerResponse, code: number, subcode?: number, refusal: Refusal = {}) {
  const { status = 400, sentence = 'No, because.' } = refusal
  json(response, { error: { message: 'no', code, error_subcode: subcode, error_user_msg: sentence } }, status)
}

/** The platform refuses the next request. */
export const refuse =
  (code: number, subcode?: number, refusal?: Refusal): Respond =>
  (_request, response) =>
    refused(response, code, subcode, refusal)

/** The platform does what it is asked, and its answer is lost. */
export const unheard = { writeHead: () => ({ end: () => {} }) } as unknown as ServerResponse

async function read(request: IncomingMessage): Promise<Seen> {
  const body = await wholeBody(request)
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://platform')
  return {
    method: request.method ?? '',
    path: pathname,
    query: searchParams,
    authorization: request.headers.authorization ?? '',
    body,
  }
}
