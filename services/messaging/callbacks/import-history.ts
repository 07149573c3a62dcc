import { bsuid, waId } from '@app/shared/contracts/fields.ts'
import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { importThreads } from '@app/shared/contracts/directory-changes.ts'
import { newId, newIdAt } from '@app/shared/values/ids.ts'
import { otherWritingOf } from '@app/shared/values/phone-number.ts'
import { z } from 'zod'
import type { Core } from '../app.ts'
import { platformId } from '../upstream/platform-id.ts'
import type { Change } from './changes.ts'
import { blockOf, contentsOf } from './contents.ts'
import { epoch } from './epoch.ts'
import { fillPlaceholders } from './fill-placeholders.ts'
import { findRecorded } from './find-recorded.ts'
import { fitParts } from './fit-parts.ts'
import { type ImportedMessage, insertImported, mediaOf } from './insert-imported.ts'

const part = z.record(z.string(), z.unknown())

/** Their sentences are the platform's; the codes are enough. */
const Errors = z.array(z.looseObject({ code: z.number() })).catch([])

const Value = z
  .looseObject({
    metadata: z.looseObject({ display_phone_number: z.string().catch('') }),
    history: z.array(z.looseObject({ threads: z.array(z.unknown()).nullish(), errors: Errors.optional() })).optional(),
    /** Messages whose files were not there yet when their thread was told: the customers' and the business's own. */
    messages: z.array(z.unknown()).nullish(),
    message_echoes: z.array(z.unknown()).nullish(),
  })
  .refine(({ history, messages, message_echoes: echoes }) => history ?? messages ?? echoes, 'tells of no message')

const digits = waId.nullish().catch(null)

/** Of somebody who hides the number the user id alone is told. */
const Thread = z
  .looseObject({
    id: digits,
    context: z
      .looseObject({ wa_id: digits, user_id: bsuid.nullish().catch(null) })
      .nullish()
      .catch(null),
    messages: z.array(z.unknown()),
  })
  .transform(({ id, context, messages }) => ({
    person: { wa_id: id ?? context?.wa_id ?? null, bsuid: context?.user_id ?? null },
    messages,
  }))
  .refine(({ person }) => person.wa_id !== null || person.bsuid !== null, 'is with nobody')

const Message = z.looseObject({
  id: platformId,
  timestamp: epoch,
  type: z.string(),
  from: z.string().nullish().catch(null),
  context: z.looseObject({ id: z.string().nullish() }).nullish().catch(null),
  history_context: z.looseObject({ status: z.string().nullish() }).nullish().catch(null),
})

interface OldThread {
  person: z.output<typeof Thread>['person']
  messages: z.output<typeof Message>[]
}

/** Threads in one question to directory, and messages in one statement. */
const threadBatch = 100
const messageBatch = 500

const states: Record<string, Pick<ImportedMessage, 'status' | 'rank'>> = {
  delivered: { status: 'delivered', rank: 4 },
  read: { status: 'read', rank: 5 },
  played: { status: 'read', rank: 5 },
  error: { status: 'failed', rank: 6 },
  failed: { status: 'failed', rank: 6 },
}

/**
 * What was exchanged before the number was connected, in chunks and phases that come in any order: rows with their old
 * times, no events. A part of another shape is left out, and logged; the rest goes on. False while the file of a message is told that is
 * not known yet.
 */
export async function importHistory(core: Core, change: Change): Promise<boolean> {
  const { phoneNumberId } = change
  if (phoneNumberId === null) return true
  const value = Value.parse(change.value)
  const told = (value.history ?? []).flatMap((chunk) => chunk.threads ?? [])
  const threads = fitParts(core, change, Thread, told).flatMap(({ person, messages }) => {
    const fit = fitParts(core, change, Message, messages)
    return fit.length > 0 ? [{ person, messages: fit }] : []
  })
  for (const { errors } of value.history ?? []) {
    if (errors !== undefined) core.log.info({ number: phoneNumberId, codes: errors.map(({ code }) => code) }, 'history')
  }
  const ownDigits = value.metadata.display_phone_number.replaceAll(/\D/g, '')
  for (let n = 0; n < threads.length; n += threadBatch) {
    await importSome(core, { ...change, phoneNumberId, ownDigits }, threads.slice(n, n + threadBatch))
  }
  const files = fitParts(core, change, part, [...(value.messages ?? []), ...(value.message_echoes ?? [])])
  return fillPlaceholders(core, { ...change, phoneNumberId }, files)
}

interface Imported extends Change {
  phoneNumberId: string
  /** The number itself, as it stands in `from`. */
  ownDigits: string
}

async function importSome(core: Core, change: Imported, threads: OldThread[]) {
  const all = threads.flatMap(({ messages }) => messages)
  const recorded = await findRecorded(
    core.sql,
    change.organizationId,
    all.map(({ id }) => id),
  )
  const fresh = threads.flatMap(({ person, messages }) => {
    const unknown = messages.filter(({ id }) => !recorded.has(id))
    return unknown.length > 0 ? [{ person, messages: unknown }] : []
  })
  const rows = fresh.length > 0 ? await rowsOf(core, change, fresh) : []
  for (let n = 0; n < rows.length; n += messageBatch) {
    const some = rows.slice(n, n + messageBatch)
    await core.sql.begin((tx) => insertImported(tx, some))
  }
  await fillPlaceholders(core, change, all)
}

async function rowsOf(core: Core, change: Imported, threads: OldThread[]): Promise<ImportedMessage[]> {
  const answer = await call(
    core,
    importThreads,
    {
      params: { phone_number_id: change.phoneNumberId },
      body: {
        threads: threads.map(({ person, messages }) => ({ ...person, last_message_at: newestOf(messages) })),
      },
    },
    systemCaller(change.organizationId, newId('req')),
  )
  return threads.flatMap(({ person, messages }, n) => {
    const parties = answer.threads[n]
    return parties ? messages.map((message) => rowOf(change, person, message, parties)) : []
  })
}

const newestOf = (messages: OldThread['messages']) =>
  new Date(Math.max(...messages.map(({ timestamp }) => timestamp.getTime()))).toISOString()

function rowOf(
  { organizationId, phoneNumberId, ownDigits, senderPhone }: Imported,
  { wa_id: waId, bsuid: userId }: OldThread['person'],
  message: OldThread['messages'][number],
  parties: ImportedMessage['parties'],
): ImportedMessage {
  const from = message.from?.replaceAll(/\D/g, '')
  const writings = from === undefined ? [] : [`+${from}`, otherWritingOf(`+${from}`)]
  const isOwn = writings.includes(`+${ownDigits}`) || (senderPhone !== null && writings.includes(senderPhone))
  const word = message.history_context?.status?.toLowerCase() ?? ''
  const state = states[word] ?? { status: 'sent' as const, rank: 3 }
  return {
    organizationId,
    phoneNumberId,
    id: newIdAt('msg', message.timestamp),
    upstreamId: message.id,
    parties,
    direction: isOwn ? 'outbound' : 'inbound',
    contents: contentsOf(message),
    recipient: isOwn ? (waId === null ? userId : `+${waId}`) : null,
    body: blockOf(message, message.type),
    contextId: message.context?.id ?? null,
    source: 'app',
    media: mediaOf(message),
    event: null,
    ...(isOwn ? state : inboundState(word)),
  }
}

/** An inbound message was delivered, or read as well. */
const inboundState = (word: string) =>
  word === 'read' || word === 'played'
    ? { status: 'read' as const, rank: 5 }
    : { status: 'delivered' as const, rank: 4 }
