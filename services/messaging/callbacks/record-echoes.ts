import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { openConversation } from '@app/shared/contracts/directory.ts'
import { bsuid } from '@app/shared/contracts/fields.ts'
import { newId, newIdAt, timeOf } from '@app/shared/values/ids.ts'
import { z } from 'zod'
import type { Core } from '../app.ts'
import { messageSentEvent } from '../sends/message-sent.ts'
import { platformId } from '../upstream/platform-id.ts'
import type { Change } from './changes.ts'
import { blockOf, contentsOf } from './contents.ts'
import { epoch } from './epoch.ts'
import { findRecorded } from './find-recorded.ts'
import { type ImportedMessage, insertImported, mediaOf } from './insert-imported.ts'
import { isRevision, reviseMessage } from './revise-message.ts'

const Value = z.looseObject({ message_echoes: z.array(z.record(z.string(), z.unknown())) })

const Echo = z.looseObject({
  id: platformId,
  timestamp: epoch,
  type: z.string(),
  to: z
    .string()
    .regex(/^\+?\d{5,20}$/)
    .optional()
    .catch(undefined),
  to_user_id: bsuid.optional().catch(undefined),
  context: z.looseObject({ id: z.string().nullish() }).nullish().catch(null),
})

/**
 * Messages that somebody sent from the number's phone app: rows as of our own sends, told as `message.sent` of source
 * `app`. One that takes back or edits another waits for it (false).
 */
export async function recordEchoes(core: Core, change: Change): Promise<boolean> {
  const { phoneNumberId, organizationId, senderPhone } = change
  if (phoneNumberId === null) return true
  const echoes = Value.parse(change.value).message_echoes
  const scope = { organizationId, phoneNumberId, senderPhone, direction: 'outbound' as const }
  const fit = echoes.filter((echo) => !isRevision(echo)).flatMap((part) => fitEcho(core, phoneNumberId, part))
  const recorded = await findRecorded(
    core.sql,
    organizationId,
    fit.map(({ echo }) => echo.id),
  )
  const fresh = fit.filter(({ echo }) => !recorded.has(echo.id))
  const messages = await Promise.all(fresh.map((one) => messageOf(core, { ...change, phoneNumberId }, one)))
  await core.sql.begin((tx) => insertImported(tx, messages))
  let areKnown = true
  for (const echo of echoes.filter(isRevision)) areKnown = (await reviseMessage(core, scope, echo)) && areKnown
  return areKnown
}

interface FitEcho {
  part: Record<string, unknown>
  echo: z.output<typeof Echo>
  /** E.164 or a bsuid. */
  recipient: string
}

/** None for an echo that names nobody, or has another shape: the others of its callback go on. */
function fitEcho({ log }: Core, phoneNumberId: string, part: Record<string, unknown>): FitEcho[] {
  const echo = Echo.safeParse(part).data
  const recipient = echo?.to === undefined ? echo?.to_user_id : `+${echo.to.replace('+', '')}`
  if (echo && recipient !== undefined) return [{ part, echo, recipient }]
  log.warn(
    { number: phoneNumberId, type: part['type'] },
    'a message of the phone app without a known shape or a recipient was left out',
  )
  return []
}

async function messageOf(
  core: Core,
  change: Change & { phoneNumberId: string },
  { part, echo, recipient }: FitEcho,
): Promise<ImportedMessage> {
  const { organizationId, phoneNumberId } = change
  const { conversation, contact } = await call(
    core,
    openConversation,
    {
      params: { phone_number_id: phoneNumberId },
      body: {
        recipient: echo.to === undefined ? { bsuid: recipient } : { phone_number: recipient },
        window: 'any',
        marketing: false,
      },
    },
    systemCaller(organizationId, newId('req')),
  )
  return withEvent(core, change, {
    organizationId,
    phoneNumberId,
    id: newIdAt('msg', echo.timestamp),
    upstreamId: echo.id,
    parties: { conversation, contact },
    direction: 'outbound',
    contents: contentsOf(part),
    recipient,
    body: blockOf(part, echo.type),
    contextId: echo.context?.id ?? null,
    source: 'app',
    status: 'sent',
    rank: 3,
    media: mediaOf(part),
    event: null,
  })
}

function withEvent({ media }: Core, change: Change, message: ImportedMessage): ImportedMessage {
  const { senderPhone, businessAccountId } = change
  const { type, content } = message.contents
  const row = { ...message, type, content, traceparent: '', senderPhone, businessAccountId, mediaOpaque: null }
  return { ...message, event: messageSentEvent(row, message.upstreamId, timeOf(message.id), { media }) }
}
