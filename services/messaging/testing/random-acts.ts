import { Problem } from '@app/shared/api/problem.ts'
import { insist } from '@app/test/each-step.ts'
import { endConnections } from '@app/test/end-connections.ts'
import { between, oneByWeight, oneOf, type Random, type Weighted } from '@app/test/faults/random.ts'
import { png } from '@app/test/png.ts'
import type { App } from '../app.ts'
import { redriveCallbacks } from '../callbacks/redrive-callbacks.ts'
import { sweepCallbackItems } from '../callbacks/sweep-items.ts'
import { sweepMedia, sweepMediaUploads } from '../media/delete-media.ts'
import { sendMessage } from '../sends/send-message.ts'
import { sweepLetOutLanes } from '../sends/sweep-lanes.ts'
import { statusPart } from './callbacks.ts'
import { idIn } from './id-in.ts'
import {
  callerOf,
  changeNumber,
  moveNumber,
  type Scene,
  tell,
  tellPart,
  tellWritten,
  type Tenant,
  type Written,
} from './scene.ts'

type Act = (scene: Scene, tenant: Tenant, random: Random) => unknown

/** Somebody sends, writes, tells, changes or breaks something. */
export const actAtRandom = (scene: Scene, random: Random): unknown =>
  oneByWeight(random, acts)(scene, oneOf(random, scene.tenants), random)

let count = 0

/** The next one to somebody is asked for after the answer to the one before. */
const sendFrom =
  (isWandering: boolean): Act =>
  async (scene, tenant, random) => {
    const person = isWandering ? tenant.passer : oneOf(random, tenant.people)
    const { phone_number_id: phoneNumberId } = isWandering ? tenant.wandering : tenant.state
    const instances = random() < 0.2 ? scene.apps : [oneOf(random, scene.apps)]
    const isPicture = random() < 0.25
    const before = tenant.asking.get(person) ?? Promise.resolve()
    const asked = before.then(() => askToSend(tenant, { phoneNumberId, person, isPicture, instances }))
    tenant.asking.set(person, asked)
    await asked
  }

interface Asked {
  phoneNumberId: string
  person: string
  isPicture: boolean
  instances: App[]
}

/** Asked of several instances at once, it is one send. */
async function askToSend(tenant: Tenant, { phoneNumberId, person, isPicture, instances }: Asked) {
  const text = `text ${++count}`
  const caller = callerOf(tenant)
  const content = isPicture
    ? { type: 'image' as const, image: { id: tenant.fileId, caption: text } }
    : { type: 'text' as const, text: { body: text } }
  const body = { messaging_product: 'chat' as const, to: `+${person}`, ...content }
  const params = { phone_number_id: phoneNumberId }
  const answers = await Promise.all(
    instances.map((app) =>
      insist(() => sendMessage(app, { params, query: {}, body }, caller)).catch((err: unknown) => {
        if (!(err instanceof Problem && tenant.refusals.has(err.failure))) throw err
        return null
      }),
    ),
  )
  const ids = answers.flatMap((answer) => (answer && 'whole' in answer ? idIn(answer.body) : []))
  if (new Set(ids).size > 1) throw new Error(`one key was answered with ${ids.join(' and ')}`)
  const [id] = ids
  if (id !== undefined) tenant.sends.push({ id, text, person })
}

const statusWords = ['sent', 'delivered', 'read', 'failed', 'sent', 'delivered', 'read'] as const

/** Of a message that the platform has, in any order, and as often as it likes. */
const tellStatus: Act = async (scene, tenant, random) => {
  const own = scene.platform.seen.filter(({ upstreamId, to }) => upstreamId !== null && isOf(tenant, to)).slice(-30)
  if (own.length === 0) return
  const { upstreamId, messageId, to } = oneOf(random, own)
  if (upstreamId === null) return
  const word = oneOf(random, statusWords)
  const told = scene.told.get(upstreamId) ?? new Set()
  scene.told.set(upstreamId, told.add(word))
  const errors = word === 'failed' ? { errors: [{ code: 131026, title: 'no' }] } : {}
  const part = statusPart(upstreamId, word, {
    recipient_id: to.slice(1),
    biz_opaque_callback_data: messageId,
    ...errors,
  })
  await tell(oneOf(random, scene.apps), tenant, { statuses: [part] })
}

const isOf = ({ people }: Tenant, to: string) => people.includes(to.slice(1))

function newWritten({ base }: Scene, tenant: Tenant, random: Random): Written {
  const upstreamId = `wamid.in${++count}`
  const isPicture = random() < 0.2
  // Of some the platform has no file.
  if (isPicture && random() < 0.7) base.files.sent.set(`file of ${upstreamId}`, { bytes: png(), mimeType: 'image/png' })
  const at = Math.floor(Date.now() / 1000) - 60
  const person = oneOf(random, tenant.people)
  const isFromApp = random() < 0.25
  const text = `words ${count}`
  const written = { upstreamId, person, isFromApp, text, at, isPicture, isTold: false, edits: [], isRevoked: false }
  tenant.written.push(written)
  return written
}

const write: Act = (scene, tenant, random) =>
  tellWritten(oneOf(random, scene.apps), tenant, newWritten(scene, tenant, random))

/** An edit or a revocation comes before the message that it is of. */
const writeLater: Act = async (scene, tenant, random) => {
  await reviseOne(scene, tenant, random, newWritten(scene, tenant, random))
}

/** One of the last, told of (once more). */
const tellAgain: Act = async ({ apps }, tenant, random) => {
  const written = lately(tenant, random)
  if (written) await tellWritten(oneOf(random, apps), tenant, written)
}

const revise: Act = async (scene, tenant, random) => {
  const written = lately(tenant, random)
  if (written) await reviseOne(scene, tenant, random, written)
}

const lately = ({ written }: Tenant, random: Random) =>
  written.length === 0 ? undefined : oneOf(random, written.slice(-10))

async function reviseOne({ apps }: Scene, tenant: Tenant, random: Random, written: Written) {
  const id = `wamid.in${++count}`
  const at = written.at + between(random, 1, 5)
  const original = { original_message_id: written.upstreamId }
  const isRevoked = random() < 0.2
  if (isRevoked) written.isRevoked = true
  else written.edits.push({ id, text: `new words ${count}`, at })
  const edited = { ...original, message: { type: 'text', text: { body: `new words ${count}` } } }
  const what = isRevoked ? { type: 'revoke', revoke: original } : { type: 'edit', edit: edited }
  await tellPart(oneOf(random, apps), tenant, written, { id, timestamp: String(at), ...what })
}

const suspend: Act = (scene, tenant) => changeNumber(scene, tenant, { refusal: 'customer_suspended' })
const leave: Act = (scene, tenant) => changeNumber(scene, tenant, { refusal: 'account_not_connected' })
const move: Act = (scene, tenant) => moveNumber(scene, tenant)
const restore: Act = (scene, tenant) => changeNumber(scene, tenant, { refusal: null })

/** As if who holds them had died long ago. He lives, and his calls go on beside what is made of them. */
const stealLanes: Act = async ({ sql, abandoned }) => {
  const rows = await sql.begin(async (tx) => {
    const stolen = await tx<{ id: string }[]>`
      update send_lanes set held_until = '-infinity', due_at = now(), arrivals = arrivals + 1
      where id = any(array(
        select id from send_lanes where held_until > now() order by random() limit 2 for update skip locked
      )) returning id
    `
    return tx<{ messageId: string }[]>`
      select message_id from sends where lane = any(${stolen.map(({ id }) => id)}) and begun_at is not null
    `
  })
  for (const { messageId } of rows) abandoned.add(messageId)
}

/** The same of those in whose work nothing is called for twice. */
const stealOthers: Act = async ({ sql }) => {
  for (const table of ['callback_lanes', 'media_lanes']) {
    await sql`
      update ${sql(table)} set held_until = '-infinity', due_at = now(), arrivals = arrivals + 1
      where id = any(array(
        select id from ${sql(table)} where held_until > now() order by random() limit 2 for update skip locked
      ))
    `
  }
}

/** All that is kept is worked through again. */
const redrive: Act = async ({ apps }, tenant, random) => {
  const since = new Date(Date.now() - 3_600_000).toISOString()
  const app = oneOf(random, apps)
  const asking = { ...callerOf(tenant), deadline: performance.now() + 20_000 }
  await insist(() => redriveCallbacks(app, { params: {}, query: {}, body: { since } }, asking))
}

/** As housekeeping does by itself. */
const sweep: Act = async ({ apps }, _, random) => {
  const { sql } = oneOf(random, apps)
  for (const one of [sweepMedia, sweepMediaUploads, sweepLetOutLanes, sweepCallbackItems]) await insist(() => one(sql))
}

/** What waits for its time has it now. */
export const hurry = ({ sql, apps }: Pick<Scene, 'sql' | 'apps'>): Promise<unknown> =>
  sql
    .begin(async (tx) => {
      await tx`update pace set tat = now() where grp = any(array(select grp from pace where tat > now() order by grp for update skip locked))`
      await tx`
        update sends set parked_until = now() where seq = any(array(
          select seq from sends where parked_until > now() order by seq for update skip locked
        ))
      `
      await tx`
        update media_copies set due_at = now(), event_due_at = least(event_due_at, now()) where seq = any(array(
          select seq from media_copies where begun_at is null order by seq for update skip locked
        ))
      `
      await tx`
        update media_uploads set expires_at = now() where (organization_id, phone_number_id, media_id) in (
          select organization_id, phone_number_id, media_id from media_uploads
          where failure is not null and expires_at > now() order by 1, 2, 3 for update skip locked
        )
      `
      for (const table of ['send_lanes', 'callback_lanes', 'media_lanes']) {
        await tx`
          update ${tx(table)} set due_at = now(), arrivals = arrivals + 1, paced_until = '-infinity' where id = any(array(
            select id from ${tx(table)} where due_at > now() and held_until < now() order by id for update skip locked
          ))
        `
      }
    })
    .then(() => apps.forEach(wakeAll))

function wakeAll({ dispatcher, callbacks }: App) {
  dispatcher.wake()
  callbacks.wake()
}

/** Somebody sends or writes as often as something else happens. */
const acts: Weighted<Act>[] = [
  [8, sendFrom(false)],
  [2, sendFrom(true)],
  [1, move],
  [5, tellStatus],
  [4, write],
  [1, writeLater],
  [2, tellAgain],
  [2, revise],
  [1, suspend],
  [1, leave],
  [4, restore],
  [2, hurry],
  [1, stealLanes],
  [1, stealOthers],
  [1, ({ sql }) => endConnections(sql)],
  [0.5, redrive],
  [0.5, sweep],
]
