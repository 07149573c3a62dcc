import type { Sql } from '@app/shared/database/database.ts'
import { restsUntil } from '@app/shared/mailbox/pace.ts'
import { type Step, stepOf } from '../sends/open-send.ts'
import { codeOfRefusal, isSentAgain } from '../sends/outcome.ts'
import { burstMs } from '../sends/pace.ts'

interface Named {
  organizationId: string
  conversationId: string
  id: string
}

interface WaitingSend {
  step: Step
  attempts: number
  begunAt: Date | null
  parkedUntil: Date | null
  expiresAt: Date
  refusal: string | null
  resendUnknown: boolean
  dueAt: Date | null
  heldUntil: Date | null
  /** When its number may send again; null: it may now. */
  numberUntil: Date | null
  /** The first open send of its lane, when that is another one, and how many are before this one. */
  behind: string | null
  ahead: number
  uploadFailure: unknown
}

/** What an open send waits for and what comes next, in words and figures; null for one that is open no more. */
export async function standingOfSend(
  sql: Sql,
  send: Named,
): Promise<{ what: string; details: Record<string, unknown> } | null> {
  const found = await find(sql, send)
  if (!found) return null
  const { behind, ahead, step, attempts, dueAt, heldUntil, parkedUntil, expiresAt, uploadFailure } = found
  const details = { attempts, due_at: dueAt, held_until: heldUntil, parked_until: parkedUntil, expires_at: expiresAt }
  if (behind === null) {
    const failure = step === 'upload' && uploadFailure !== null ? { upload_failure: uploadFailure } : {}
    return { what: words[step](found), details: { ...details, next_at: nextAt(found), ...failure } }
  }
  const first = await standingOfSend(sql, { ...send, id: behind })
  return {
    what: `waits behind ${behind}: messages of a conversation go one at a time, in their order`,
    details: {
      ...details,
      behind,
      ahead,
      ...(first && { which: first.what, which_next_at: first.details['next_at'] }),
    },
  }
}

/** What is done with the first of a lane, by the step that its claim takes. */
const words: Record<Step, (send: WaitingSend) => string> = {
  known: () => 'is at the platform, as a callback told: its send ends',
  orphaned: (send) =>
    isAhead(send.heldUntil)
      ? `is being sent: attempt ${send.attempts}`
      : `broke off in attempt ${send.attempts} with the process that made it: nobody knows yet whether it arrived`,
  parked: (send) =>
    `waits for a callback that tells whether the platform took attempt ${send.attempts}; else it ${endOfUnknown(send)}`,
  unknown: (send) => `no callback told whether the platform took attempt ${send.attempts}: it ${endOfUnknown(send)}`,
  refused: ({ refusal }) => `is about to fail: ${codeOfRefusal(refusal ?? '')}`,
  expired: () => 'is about to fail: expired',
  upload: () => 'waits until its file is at the platform',
  send: ({ attempts, dueAt, numberUntil }) => {
    if (attempts > 0) return `waits for attempt ${attempts + 1}`
    if (isAhead(dueAt)) return 'waits for the pace of its recipient'
    return numberUntil === null ? 'waits for its turn' : 'waits for the pace of its number'
  },
}

const endOfUnknown = (send: WaitingSend) => (isSentAgain(send) ? 'is sent again' : 'fails as delivery_unknown')

const isAhead = (time: Date | null) => time !== null && time.getTime() > Date.now()

function nextAt({ step, dueAt, heldUntil, parkedUntil, numberUntil }: WaitingSend): Date | null {
  if (step === 'orphaned' && isAhead(heldUntil)) return heldUntil
  if (step === 'parked') return parkedUntil
  return step === 'send' && numberUntil !== null && numberUntil > (dueAt ?? 0) ? numberUntil : dueAt
}

async function find(sql: Sql, { organizationId, conversationId, id }: Named) {
  const [found] = await sql<WaitingSend[]>`
    select ${stepOf(sql)} as step, h.attempts, h.begun_at, h.parked_until, h.expires_at, s.refusal,
      s.settings ->> 'unknown_outcome' = 'resend' as resend_unknown, l.due_at,
      nullif(l.held_until, '-infinity') as held_until, first.message_id as behind,
      (select count(*)::int from sends b where b.lane = h.lane and b.seq < h.seq) as ahead,
      ${restsUntil(sql, burstMs)} as number_until,
      u.failure as upload_failure
    from sends h
    join senders s on s.organization_id = h.organization_id and s.phone_number_id = h.phone_number_id
    join messages m on m.organization_id = h.organization_id and m.phone_number_id = h.phone_number_id
      and m.id = h.message_id
    left join send_lanes l on l.id = h.lane
    left join pace p on p.grp = h.phone_number_id
    left join media_uploads u on u.organization_id = m.organization_id and u.phone_number_id = m.phone_number_id
      and u.media_id = m.media_id
    left join lateral (
      select message_id from sends b where b.lane = h.lane and b.seq < h.seq order by b.lane, b.seq limit 1
    ) first on true
    where h.lane in (${conversationId}, ${`${conversationId}:${id}`}) and h.message_id = ${id}
      and h.organization_id = ${organizationId}
  `
  return found
}
