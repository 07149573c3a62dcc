import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Caller } from '@app/shared/api/contract.ts'
import { openConversation, recordInbound } from '@app/shared/contracts/directory.ts'
import type { AccountState } from '@app/shared/contracts/platform.ts'
import { newId } from '@app/shared/values/ids.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { startRelay } from '@app/shared/events/relay.ts'
import { serve } from '@app/shared/bus/rpc.ts'
import { sealToken } from '@app/shared/secrets/account-token.ts'
import { createUpstream } from '@app/shared/outside/upstream.ts'
import { type Account, newAccountState } from '@app/test/account-state.ts'
import { listen } from '@app/test/listen.ts'
import { type TestService, testService } from '@app/test/service.ts'
import { wholeBody } from '@app/test/whole-body.ts'
import type { z } from 'zod'
import { type App, type Core, createQueryTurns } from '../app.ts'
import { createAcceptCallback } from '../callbacks/accept-callback.ts'
import { startCallbacks } from '../callbacks/process-callbacks.ts'
import { startCopier } from '../media/copy-media.ts'
import { createMediaWays } from '../media/media.ts'
import { startLateTelling } from '../media/tell-late.ts'
import { createMeters } from '../metrics.ts'
import { acceptSends } from '../sends/accept-send.ts'
import { startDispatcher } from '../sends/dispatch.ts'
import { createRefusalOf } from '../senders/refusal-of.ts'
import { createKnownConversations } from '../sends/known-conversations.ts'
import type { SendBody } from '../sends/draft.ts'
import { sendMessage } from '../sends/send-message.ts'
import { putSender, storeSender } from '../senders/put-sender.ts'
import { createAskInTurn } from '../senders/report-account.ts'
import { createKnownTemplates } from '../templates/known-templates.ts'
import { createReadings } from '../templates/readings.ts'
import { createMediaPlatform, type MediaPlatform } from './media-platform.ts'

export const organizationId = newId('org')
export const phoneNumberId = '106540352242922'
const accountId = newId('acc')
const sealKeys = { current: 'k1', byId: new Map([['k1', randomBytes(32)]]) }

/** A call that the upstream got. */
interface UpstreamCall {
  to: string
  text: string
  messageId: string
  body: Record<string, unknown>
}

type Respond = (call: UpstreamCall, response: ServerResponse, n: number) => void

export interface TestMessaging extends App {
  calls: UpstreamCall[]
  /** The platform's files. */
  files: MediaPlatform
  /** Where our own files lie. */
  mediaDir: string
  /** How the upstream answers from now on. */
  respondWith: (respond: Respond) => void
  send: (body: string, options?: { key?: string; to?: string }) => Promise<{ id: string; conversationId: string }>
  /** A send of any type. */
  sendBody: (body: SendBody, key?: string) => Promise<{ id: string; conversationId: string }>
  number: { organizationId: string; phoneNumberId: string }
  settings: z.output<typeof AccountState>['settings']
  /** Recipients whose window is closed. */
  closedWindows: Set<string>
  /** People over whom directory stumbles. */
  stumblingBlocks: Set<string>
  /** The recipients for whom directory was asked for a conversation, in order. */
  opened: string[]
  setSender: (changes: Partial<z.output<typeof AccountState>>) => Promise<void>
  /** The same, as platform asks it. */
  putSender: (changes: Partial<z.output<typeof AccountState>>) => Promise<unknown>
  events: () => Promise<Array<{ id: string; subject: string; payload: Record<string, unknown> }>>
  statusOf: (id: string) => Promise<string>
  close: () => Promise<void>
}

export const accept: Respond = (_call, response, n) => {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ messaging_product: 'whatsapp', contacts: [], messages: [{ id: `wamid.OUT${n}` }] }))
}

export const refuse =
  (code: number, status = 400): Respond =>
  (_call, response) => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: { message: `(#${code}) no`, type: 'OAuthException', code, fbtrace_id: 'A' } }))
  }

/** Messaging with real Postgres and NATS; the platform's API and directory's two answers stand in for what is outside. */
export async function testMessaging(given?: TestService): Promise<TestMessaging> {
  const service = given ?? (await testService('messaging'))
  const upstream = await startUpstream()
  const relay = startRelay(service)
  const mediaDir = mkdtempSync(join(tmpdir(), 'media-'))
  const core: Core = {
    ...service,
    relay,
    sealKeys,
    cursorKeys: sealKeys,
    known: createKnownConversations({ wholeSince: () => -Infinity }),
    templates: createKnownTemplates(service.sql),
    readings: createReadings(),
    media: createMediaWays({
      MEDIA_STORE: 'folder',
      MEDIA_DIR: mediaDir,
      S3_REGION: 'us-east-1',
      PUBLIC_URL: 'https://chat.example.com',
      EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
      UPSTREAM_BASE_URL: upstream.url,
      UPSTREAM_MEDIA_ORIGINS: [],
    }),
    meters: createMeters(service),
    upstream: upstreamAt(upstream.url),
    askInTurn: createAskInTurn(),
  }
  const closedWindows = new Set<string>()
  const stumblingBlocks = new Set<string>()
  const opened: string[] = []
  const directory = await serveDirectory(core, { closedWindows, stumblingBlocks, opened })
  const { app, stop } = startInstance(core)
  const { dispatcher } = app
  let version = 0
  const setSender = async (changes: Partial<z.output<typeof AccountState>> = {}) => {
    await app.sql.begin((tx) => storeSender(tx, sealKeys, senderState({ version: ++version, ...changes })))
    dispatcher.wake()
  }
  await setSender()
  return {
    ...app,
    calls: upstream.calls,
    files: upstream.files,
    mediaDir,
    respondWith: upstream.respondWith,
    sendBody: (body, key) => sendAny(app, body, callerOf(key)),
    number: { organizationId, phoneNumberId },
    settings: senderState().settings,
    closedWindows,
    stumblingBlocks,
    opened,
    setSender,
    putSender: (changes) =>
      putSender(app, { params: {}, query: {}, body: senderState({ version: ++version, ...changes }) }, callerOf()),
    send: (body, options) => sendText(app, body, options),
    events: () => eventsOf(app),
    statusOf: async (id) =>
      (await app.sql<{ status: string }[]>`select status from messages where id = ${id}`)[0]?.status ?? '',
    async close() {
      core.media.stopping.abort()
      await Promise.all([stop(), directory.stop()])
      await relay.stop()
      await core.media.close()
      rmSync(mediaDir, { recursive: true })
      await app.upstream.close()
      upstream.stop()
      await service.close()
    },
  }
}

export const upstreamAt = (url: string) =>
  createUpstream({
    UPSTREAM_BASE_URL: url,
    UPSTREAM_API_VERSION: 'v23.0',
    UPSTREAM_APP_ID: '1234567890',
    UPSTREAM_KEEPALIVE_MS: 1000,
    UPSTREAM_SUBSCRIBE_APPS: false,
  })

/** All that an instance does by itself. */
export function startInstance(core: Core): { app: App; stop: () => Promise<void> } {
  const dispatcher = startDispatcher(core)
  const copier = startCopier(core)
  const lateTelling = startLateTelling(core)
  const wake = () => {
    dispatcher.wake()
    copier.wake()
  }
  const app: App = {
    ...core,
    dispatcher,
    copier,
    callbacks: startCallbacks(core, wake),
    acceptSend: acceptSends(core, dispatcher),
    refusalOf: createRefusalOf(core.sql),
    acceptCallback: createAcceptCallback(core.sql),
    ...createQueryTurns(),
  }
  return {
    app,
    stop: async () =>
      void (await Promise.all([dispatcher.stop(), app.callbacks.stop(), copier.stop(), lateTelling.stop()])),
  }
}

const callerOf = (key?: string, fingerprint = 'same'): Caller => ({
  organizationId,
  keyId: newId('key'),
  requestId: newId('req'),
  deadline: performance.now() + 20_000,
  traceparent: '',
  idempotency: key === undefined ? undefined : { key, fingerprint },
})

const sendText = (app: App, body: string, { key, to = '+15550123456' }: { key?: string; to?: string } = {}) =>
  sendAny(app, { messaging_product: 'chat', to, type: 'text', text: { body } }, callerOf(key, body))

async function sendAny(app: App, body: SendBody, caller: Caller) {
  const answer = await sendMessage(app, { params: { phone_number_id: phoneNumberId }, query: {}, body }, caller)
  const text = 'whole' in answer ? Buffer.from(answer.body).toString() : ''
  const { data } = JSON.parse(text) as { data: { id: string; conversation_id: string } }
  return { id: data.id, conversationId: data.conversation_id }
}

const senderState = (changes: Partial<Account> = {}) =>
  newAccountState({
    account_id: accountId,
    organization_id: organizationId,
    phone_number_id: phoneNumberId,
    sealed_token: sealToken(sealKeys, 'token', accountId),
    ...changes,
  })

async function serveDirectory(
  core: Core,
  { closedWindows, stumblingBlocks, opened }: Pick<TestMessaging, 'closedWindows' | 'stumblingBlocks' | 'opened'>,
) {
  const parties = new Map<string, { conversation: string; contact: string }>()
  const partiesOf = (phone: string) => {
    const known = parties.get(phone) ?? { conversation: newId('cnv'), contact: newId('ctc') }
    parties.set(phone, known)
    return {
      conversation: { id: known.conversation, status: 'open' as const, assigned_to: null },
      contact: { id: known.contact, phone_number: phone, name: 'Ana' },
      window_until: new Date(Date.now() + 60_000).toISOString(),
    }
  }
  return serve(
    { ...core, name: 'directory' },
    { openConversation, recordInbound },
    {
      openConversation: async (_app, { body }) => {
        const phone = 'phone_number' in body.recipient ? body.recipient.phone_number : body.recipient.bsuid
        opened.push(phone)
        if (body.window === 'open' && closedWindows.has(phone)) throw new Problem('outside_24h_window')
        return partiesOf(phone)
      },
      recordInbound: async (_app, { body }) => {
        if (stumblingBlocks.has(body.wa_id ?? '')) throw new Error('a fault of our own')
        return { ...partiesOf(`+${body.wa_id}`), labels: [] }
      },
    },
  )
}

async function eventsOf({ sql }: App) {
  const rows = await sql<{ id: string; subject: string; payload: Uint8Array }[]>`
    select id, subject, payload from outbox order by seq
  `
  return rows.map(({ id, subject, payload }) => ({
    id: id.slice(id.indexOf(':') + 1),
    subject,
    payload: JSON.parse(Buffer.from(payload).toString()) as Record<string, unknown>,
  }))
}

async function startUpstream() {
  const calls: UpstreamCall[] = []
  const files = createMediaPlatform()
  let respond = accept
  const server = createServer((request, response) => {
    if (!request.url?.endsWith('/messages')) return files.answer(request, response)
    void wholeBody(request).then((bytes) => {
      const body = JSON.parse(bytes.toString()) as MessageBody
      const call = { to: body.to, text: body.text?.body ?? '', messageId: body.biz_opaque_callback_data, body }
      respond(call, response, calls.push(call))
    })
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    files,
    respondWith: (next: Respond) => {
      respond = next
    },
    stop: () => server.close().closeAllConnections(),
  }
}

type MessageBody = Record<string, unknown> & {
  to: string
  text?: { body: string }
  biz_opaque_callback_data: string
}
