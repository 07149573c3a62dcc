import { randomUUID } from 'node:crypto'
import type { Caller } from '@app/shared/api/contract.ts'
import { systemCaller } from '@app/shared/bus/ask.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { sealToken } from '@app/shared/secrets/account-token.ts'
import { newId } from '@app/shared/values/ids.ts'
import { type Account, newAccountState } from '@app/test/account-state.ts'
import { insist } from '@app/test/each-step.ts'
import type { App } from '../app.ts'
import { putSender } from '../senders/put-sender.ts'
import type { TestMessaging } from './app.ts'
import { platformOf } from './callbacks.ts'
import type { MoodyPlatform } from './moody-platform.ts'
import { uploadPicture } from './upload-picture.ts'

/** A send that was accepted. */
export interface AcceptedSend {
  id: string
  text: string
  person: string
}

/** A message of a customer, or one to a customer from the phone's own app, and what was told of it since. */
export interface Written {
  upstreamId: string
  person: string
  isFromApp: boolean
  text: string
  /** Epoch seconds. */
  at: number
  isPicture: boolean
  /** Whether the platform has told of it already. */
  isTold: boolean
  edits: { id: string; text: string; at: number }[]
  isRevoked: boolean
}

/** An organization of a check at random, with a number of its own, and one that goes from organization to organization. */
export interface Tenant {
  state: Account
  /** Of the number that all have had. */
  wandering: Account
  people: string[]
  /** Somebody who is written to from the other number. */
  passer: string
  /** A file that it has uploaded. */
  fileId: string
  /** In the order in which they were accepted, of each person. */
  sends: AcceptedSend[]
  written: Written[]
  /** By person, the end of what is being sent: the next is asked for after its answer. */
  asking: Map<string, Promise<unknown>>
  /** The end of the changes of its number: platform tells one after the other. */
  changing: Promise<unknown>
  /** Why its sends were refused at some time. */
  refusals: Set<string>
}

export interface Scene {
  apps: App[]
  base: TestMessaging
  /** A session of its own, which nobody ends. */
  sql: Sql
  platform: MoodyPlatform
  tenants: Tenant[]
  /** Status words that the platform has told, by its ids. */
  told: Map<string, Set<string>>
  /** Messages of which a call was taken for lost while it was under way. */
  abandoned: Set<string>
  /** Who has the number that goes around. */
  owner: Tenant | null
}

/** Organizations: of the second, what nobody can tell is sent again; of the third, what fails does not hold up the next. */
const habits = [
  { unknown_outcome: 'fail', ordering: 'strict' },
  { unknown_outcome: 'resend', ordering: 'strict' },
  { unknown_outcome: 'fail', ordering: 'relaxed' },
] as const

export async function setScene(parts: Pick<Scene, 'apps' | 'base' | 'sql' | 'platform'>): Promise<Scene> {
  const scene: Scene = { ...parts, tenants: [], told: new Map(), abandoned: new Set(), owner: null }
  for (const [n, habit] of habits.entries()) {
    const tenant = newTenant(parts.base, n, habit)
    scene.tenants.push(tenant)
    await changeNumber(scene, tenant, {})
    await moveNumber(scene, tenant)
    tenant.fileId = await uploadPicture(parts.base, parts.sql, tenant.state.phone_number_id, callerOf(tenant))
  }
  return scene
}

function newTenant({ sealKeys }: TestMessaging, n: number, habit: (typeof habits)[number]): Tenant {
  const usual = newAccountState({ business_account_id: `20000000000${n}` })
  const settings = { ...usual.settings, ...habit, messages_per_month: 1_000_000 }
  const stateOf = (accountId: string, phoneNumberId: string): Account => ({
    ...usual,
    account_id: accountId,
    phone_number_id: phoneNumberId,
    settings,
    sealed_token: sealToken(sealKeys, 'token', accountId),
  })
  return {
    state: stateOf(usual.account_id, `10000000000${n}`),
    wandering: stateOf(newId('acc'), '100000000009'),
    people: Array.from({ length: 4 }, (_, k) => `1555100${n}00${k}`),
    passer: `1555100${n}009`,
    fileId: '',
    sends: [],
    written: [],
    asking: new Map(),
    changing: Promise.resolve(),
    refusals: new Set(),
  }
}

/** Platform tells of a change of the tenant's own number, until it is answered. */
export function changeNumber(scene: Scene, tenant: Tenant, changes: Partial<Account>): Promise<unknown> {
  tenant.changing = tenant.changing.then(() => put(scene, tenant, tenant.state, changes))
  return tenant.changing
}

let moving: Promise<unknown> = Promise.resolve()

/** The number that goes around leaves who has it, and comes to the tenant. */
export function moveNumber(scene: Scene, to: Tenant): Promise<unknown> {
  moving = moving.then(async () => {
    const { owner } = scene
    const left = { attached: false, refusal: 'account_not_connected' as const }
    if (owner) await put(scene, owner, owner.wandering, left)
    scene.owner = to
    await put(scene, to, to.wandering, { attached: true, refusal: null, attached_at: new Date().toISOString() })
  })
  return moving
}

function put({ apps }: Scene, tenant: Tenant, state: Account, changes: Partial<Account>) {
  const putting = putState(apps, state, changes)
  if (state.refusal !== null) tenant.refusals.add(state.refusal)
  return putting
}

/** Platform tells of a change of a number, one instance after the other until it is answered. */
export function putState(apps: App[], state: Account, changes: Partial<Account>): Promise<unknown> {
  Object.assign(state, changes, { version: state.version + 1 })
  const body = { ...state }
  return insist((asked) =>
    putSender(nthOf(apps, asked), { params: {}, query: {}, body }, systemCaller(body.organization_id)),
  )
}

/** One of them after the other. */
export function nthOf<T>(some: readonly T[], n: number): T {
  const one = some[n % some.length]
  if (one === undefined) throw new Error('there is none')
  return one
}

export function callerOf({ state }: Tenant): Caller {
  const key = randomUUID()
  return { ...systemCaller(state.organization_id), deadline: Infinity, idempotency: { key, fingerprint: key } }
}

/** The platform tells something of the tenant's number, surely, and perhaps more than once. */
export async function tell(app: App, { state }: Tenant, value: object, field = 'messages'): Promise<void> {
  const metadata = { display_phone_number: state.phone_number?.slice(1), phone_number_id: state.phone_number_id }
  const whole = { messaging_product: 'whatsapp', metadata, ...value }
  await insist(() => platformOf(app).change(field, whole, state.business_account_id))
}

/** The platform tells of the message. */
export async function tellWritten(app: App, tenant: Tenant, written: Written): Promise<void> {
  written.isTold = true
  const { upstreamId, text, at, isPicture } = written
  const content = isPicture
    ? { type: 'image', image: { id: `file of ${upstreamId}`, mime_type: 'image/png', caption: text } }
    : { type: 'text', text: { body: text } }
  await tellPart(app, tenant, written, { id: upstreamId, timestamp: String(at), ...content })
}

/** The same of a part that is of the same people: the message, or a change of it. */
export function tellPart(app: App, tenant: Tenant, { person, isFromApp }: Written, part: object): Promise<void> {
  const own = tenant.state.phone_number?.slice(1)
  if (isFromApp)
    return tell(app, tenant, { message_echoes: [{ from: own, to: person, ...part }] }, 'smb_message_echoes')
  const contacts = [{ profile: { name: 'Ana' }, wa_id: person }]
  return tell(app, tenant, { contacts, messages: [{ from: person, ...part }] })
}
