import type { ServerResponse } from 'node:http'
import { ask, call, systemCaller } from '@app/shared/bus/ask.ts'
import type { CallHeader } from '@app/shared/bus/call-header.ts'
import type { Rpc } from '@app/shared/api/contract.ts'
import { beginSetup, completeSetup, getSetup } from '@app/shared/contracts/onboarding.ts'
import { newId } from '@app/shared/values/ids.ts'
import { parseJson } from '@app/shared/api/json.ts'
import { notFound, Problem, toProblem } from '@app/shared/api/problem.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { App } from '../app.ts'
import { deadlineMs, outsideDeadlineMs } from '../exchange/exchange.ts'
import { lateProblem } from '../exchange/late-problem.ts'
import { readBody } from '../exchange/read-body.ts'
import { respond } from '../exchange/respond.ts'
import type { Take } from '../exchange/take-over.ts'
import { takeOverWatched, watched } from '../exchange/watched.ts'
import { traceparentOf } from '../exchange/trace.ts'
import { strangersOf } from '../limits/in-flight.ts'
import { noRoute } from '../metrics.ts'
import { admitVisitor } from './admit-visitor.ts'
import { headersOf } from './page-headers.ts'
import { pageFile } from './render-page.ts'
import { isToken, nameOf, setupCookie, tokenIn } from './setup-cookie.ts'
import { askedTooOften, noCookie, type Page, setupPage, unavailable, unknownLink } from './setup-pages.ts'
import type { Signup } from './signup-settings.ts'

const bodyLimitBytes = 16 * 1024

/**
 * The hosted page behind a setup link, outside `/v1`: `/setup/{token}` keeps the token in a cookie and leads to `/setup`,
 * which shows what the link is worth; the page's script begins and completes. All its addresses are relative. While requests are
 * turned away visitors and script learn it from here, and what costs no more than that is answered as always.
 */
export function routeSetup(http: FastifyInstance, app: App, signup: Signup): void {
  for (const [name, type] of [
    ['page.css', 'text/css'],
    ['page.js', 'text/javascript'],
  ] as const) {
    const file = fileTaker(app, name, type)
    http.route(takeOverWatched(app, 'GET', `/setup/${name}`, file, file))
  }
  // What looks after links, in mails and chats, asks with HEAD.
  for (const method of ['GET', 'HEAD'] as const) {
    const link = linkTaker(app, signup)
    for (const path of ['/setup/:token', '/setup/*']) http.route(takeOverWatched(app, method, path, link, link))
    const page = pageTaker(app, signup, (request) => findPage(app, request, signup))
    http.route(takeOverWatched(app, method, '/setup', page, pageTaker(app, signup, turnAway)))
  }
  for (const [path, contract, withinMs] of [
    ['/setup/begin', beginSetup, deadlineMs],
    ['/setup/complete', completeSetup, outsideDeadlineMs],
  ] as const) {
    const question = questionTaker(app, (request) => passOn(app, request, contract, withinMs))
    http.route(takeOverWatched(app, 'POST', path, question, questionTaker(app, turnAway)))
  }
}

const turnAway = () => Promise.reject(lateProblem())

function fileTaker(app: App, name: string, type: string): Take {
  const body = pageFile(name)
  return (_request, reply) => {
    reply.hijack()
    write(app, reply.raw, 200, { ...headersOf(null, type), 'Cache-Control': 'public, max-age=300' }, body)
  }
}

/** A link with a slash behind it is the same one. */
const linkTaker =
  (app: App, signup: Signup): Take =>
  (request, reply) => {
    reply.hijack()
    const { token, rest, up } = piecesOf(request)
    if (!isToken(token) || rest.some((name) => name !== '')) return show(app, reply.raw, signup, unknownLink(up))
    const cookie = setupCookie(token, request.headers.cookie, signup)
    const more = { Location: `${up}../setup?link=${nameOf(token)}`, 'Set-Cookie': cookie }
    write(app, reply.raw, 303, { ...headersOf(null, 'text/plain'), ...more }, Buffer.alloc(0))
  }

/** That of the link that its address names: other tabs may have others. */
function tokenOf({ headers, query }: FastifyRequest) {
  const { link } = query as { link?: unknown }
  return tokenIn(headers.cookie, typeof link === 'string' ? link : null)
}

function piecesOf({ url }: FastifyRequest) {
  const [, , token = '', ...rest] = (url.split('?')[0] ?? '').split('/')
  return { token, rest, up: '../'.repeat(rest.length) }
}

export const isLink = ({ url }: FastifyRequest): boolean => url.startsWith('/setup/')

/** A link whose path does not decode, since a mail program or a hand has broken it, was opened by a visitor all the same. */
export const brokenLink = (app: App): Take =>
  watched(app, noRoute, (request, reply) => {
    reply.hijack()
    show(app, reply.raw, null, unknownLink(piecesOf(request).up))
  })

const pageTaker =
  (app: App, signup: Signup, find: (request: FastifyRequest) => Promise<Page>): Take =>
  (request, reply) => {
    reply.hijack()
    void find(request)
      .catch((err: unknown) => failedPage(app, err))
      .then((page) => show(app, reply.raw, signup, page))
  }

const questionTaker =
  (app: App, ask: (request: FastifyRequest) => Promise<Answered>): Take =>
  (request, reply) => {
    reply.hijack()
    void ask(request)
      .catch((err: unknown) => refusalOf(app, err))
      .then(({ status, body }) => write(app, reply.raw, status, headersOf(null, 'application/json'), body))
  }

async function findPage(app: App, request: FastifyRequest, signup: Signup): Promise<Page> {
  await admitVisitor(app, request)
  const token = tokenOf(request)
  if (token === null) return noCookie()
  const setup = await app.inFlight.during(strangersOf(app, request.raw), () =>
    call(app, getSetup, { body: { token } }, systemCaller('', newId('req'))),
  )
  return setupPage(setup, signup)
}

function failedPage({ warnSparingly }: App, err: unknown): Page {
  const problem = toProblem(err)
  if (problem.status === 404) return unknownLink()
  // As many as strangers like: none of our failures, and no line of the log.
  if (problem.status === 429) return askedTooOften()
  warnSparingly({ err: problem.cause ?? problem }, 'setup page')
  return unavailable()
}

/** What the script is answered. */
interface Answered {
  status: number
  body: Uint8Array
}

/** The script's question, with the token that only the cookie knows. */
async function passOn(app: App, request: FastifyRequest, contract: Rpc, withinMs: number): Promise<Answered> {
  await admitVisitor(app, request)
  if (!isOurOwnPage(request)) throw new Problem('invalid_field_value', { message: 'Not asked by the page itself.' })
  const token = tokenOf(request)
  if (token === null) throw notFound()
  const owner = strangersOf(app, request.raw)
  const bytes = await readBody(request.raw, bodyLimitBytes, app.inFlight, owner)
  try {
    const given = parseJson(bytes)
    const body = Buffer.from(JSON.stringify({ ...(typeof given === 'object' ? given : {}), token }))
    const reply = await app.inFlight.during(owner, () => ask(app, contract, headerOf(request, withinMs), body))
    const { failure } = reply
    return { status: failure === null ? 200 : new Problem(failure).status, body: reply.body }
  } finally {
    app.inFlight.hold(owner, -bytes.length)
  }
}

/** JSON that another site's page sends comes with its origin; a form cannot send JSON. */
function isOurOwnPage({ headers }: FastifyRequest) {
  const { origin, host, 'sec-fetch-site': site, 'content-type': type = '' } = headers
  if (!/^application\/json *(;|$)/i.test(type)) return false
  return site === 'same-origin' || (origin !== undefined && URL.parse(origin)?.host === host)
}

const headerOf = ({ headers }: FastifyRequest, remainingMs: number): CallHeader => ({
  organization: '',
  key: '',
  request: newId('req'),
  remainingMs,
  trace: traceparentOf(headers.traceparent),
  params: {},
  query: {},
})

function refusalOf({ warnSparingly }: App, err: unknown): Answered {
  const problem = toProblem(err)
  if (problem.status >= 500) warnSparingly({ err: problem.cause ?? problem }, 'setup')
  return { status: problem.status, body: Buffer.from(JSON.stringify(problem.toEnvelope(newId('req')))) }
}

function show(app: App, response: ServerResponse, signup: Signup | null, { status, body, opensDialog }: Page) {
  write(app, response, status, headersOf(opensDialog ? signup : null, 'text/html'), body)
}

function write(app: App, response: ServerResponse, status: number, headers: Record<string, string>, body: Uint8Array) {
  const more = { 'Content-Length': String(body.length), ...(app.isStopping() && { Connection: 'close' }) }
  const all = { ...headers, ...more, ...([429, 503].includes(status) && { 'Retry-After': '1' }) }
  respond(response, status, Object.entries(all).flat(), body)
}
