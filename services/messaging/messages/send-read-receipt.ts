import { call, systemCaller } from '@app/shared/bus/ask.ts'
import type { Caller, WholeAnswer } from '@app/shared/api/contract.ts'
import { noteRead } from '@app/shared/contracts/directory.ts'
import { messagesRead, sendMessage as contract } from '@app/shared/contracts/messaging.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { limitTo } from '@app/shared/database/limit-to.ts'
import type { ReadReceipt } from '@app/shared/contracts/send.ts'
import { emit } from '@app/shared/events/events.ts'
import { once, storedAnswer } from '@app/shared/idempotency/idempotency.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import { invalidField, notFound } from '@app/shared/api/problem.ts'
import type { z } from 'zod'
import type { App } from '../app.ts'
import { askAs } from '../senders/report-account.ts'
import { openAccount } from '../templates/templates.ts'
import { markRead, receiptRefusalOf } from '../upstream/mark-read.ts'
import { isOfConversation } from './messages.ts'
import { type Counted, hasCounted } from './unread-messages.ts'

type Body = z.output<typeof ReadReceipt>

/**
 * Tells the platform that an inbound message, and with it the earlier ones of its conversation, was read; then notes it
 * here. Each step may be made again: after a crash in between, the same request goes through all of them.
 */
export async function sendReadReceipt(
  app: App,
  phoneNumberId: string,
  body: Body,
  caller: Caller,
): Promise<WholeAnswer> {
  const replay = await storedAnswer(app.sql, app.sealKeys, caller)
  if (replay) return replay
  const message = await inboundMessage(app, phoneNumberId, body.message_id, caller)
  if (message.status !== 'read' || body.typing_indicator) await tellPlatform(app, phoneNumberId, body, caller)
  const note = { id: newId('evt'), read: 0, upTo: timeOf(message.id).toISOString() }
  const reading = async (tx: TransactionSql) => {
    const read = await readUpTo(tx, message)
    note.read = read.filter(hasCounted).length
    if (note.read > 0) {
      await emit(
        tx,
        messagesRead,
        { conversation_id: message.conversationId, read: note.read, up_to: note.upTo },
        { ...caller, id: note.id },
      )
    }
    return { id: message.id, object: 'message' as const, status: 'read' as const, message_id: body.message_id }
  }
  // All that was ever written in the conversation is looked through.
  const answer = await app.receiptInTurn(caller, () => once(app, contract, caller, reading))
  await tellDirectory(app, message.conversationId, note, caller)
  return answer
}

type Read = Pick<InboundMessage, 'organizationId' | 'phoneNumberId' | 'conversationId' | 'id'>

/** Messages that one statement marks as read. One statement for 100,000 may time out each time, and they would stay unread for ever. */
const partRows = 1_000

/** Marks the message and all before it. Ids of inbound messages begin with the platform's time, so earlier ones have smaller ids. */
export async function readUpTo(tx: Sql | TransactionSql, message: Read): Promise<Counted[]> {
  const read: (Counted & { id: string })[] = []
  for (let last = ''; ;) {
    const part = await readPart(tx, message, last)
    read.push(...part)
    if (part.length < partRows) return read
    last = part.reduce((greatest, { id }) => (id > greatest ? id : greatest), last)
  }
}

/** Locked in the order of their ids, so that two receipts of a conversation cannot deadlock. */
const readPart = (tx: Sql | TransactionSql, message: Read, after: string) =>
  tx<(Counted & { id: string })[]>`
    update messages set status = 'read', rank = 5
    where organization_id = ${message.organizationId} and phone_number_id = ${message.phoneNumberId} and id = any(array(
      select id from messages
      where ${isOfConversation(tx, { ...message, direction: 'inbound', status: 'delivered' })}
        and id > ${after} and id <= ${message.id}
      order by id ${limitTo(tx, partRows)} for no key update
    ))
    returning id, type, unsupported, source
  `

async function tellPlatform(app: App, phoneNumberId: string, body: Body, caller: Caller) {
  const account = await openAccount(app, { organizationId: caller.organizationId, phoneNumberId })
  try {
    const { deadline } = caller
    await askAs(app, { ...account, deadline }, () => markRead(app.upstream, { ...account, ...body }, deadline))
  } catch (err) {
    throw receiptRefusalOf(err)
  }
}

interface InboundMessage {
  organizationId: string
  phoneNumberId: string
  id: string
  conversationId: string
  direction: 'inbound' | 'outbound'
  status: string
}

async function inboundMessage({ sql }: App, phoneNumberId: string, upstreamId: string, { organizationId }: Caller) {
  const [message] = await sql<InboundMessage[]>`
    select organization_id, phone_number_id, id, conversation_id, direction, status from messages
    where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and upstream_id = ${upstreamId}
  `
  if (!message) throw notFound('message_id')
  if (message.direction === 'outbound') {
    throw invalidField('message_id', 'message_id: read receipts are for inbound messages.')
  }
  return message
}

interface Note {
  id: string
  read: number
  upTo: string
}

/**
 * So that whoever looks right after the answer finds the unread count changed. The event, which has the same id, does it in any case,
 * and only one of the two counts. Directory is told even if nothing new was read: another conversation may have been merged into this
 * one since the message was.
 */
async function tellDirectory(app: App, conversationId: string, note: Note, caller: Caller) {
  const body = { event_id: note.id, conversation_id: conversationId, read: note.read, up_to: note.upTo }
  await call(app, noteRead, { body }, systemCaller(caller.organizationId, caller.requestId)).catch((err: unknown) => {
    app.log.warn({ err, conversation: conversationId }, 'the unread count cannot be updated now: the event updates it')
  })
}
