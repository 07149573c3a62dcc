import { randomUUID } from 'node:crypto'
import type { Caller } from '@app/shared/api/contract.ts'
import { systemCaller } from '@app/shared/bus/ask.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { seal } from '@app/shared/secrets/seal.ts'
import { type Account, newAccountState } from '@app/test/account-state.ts'
import { insist } from '@app/test/each-step.ts'
import type { App } from '../app.ts'
import { splitCallback } from '../callbacks/split.ts'
import { putSender } from '../senders/put-sender.ts'
import type { TestMessaging } from './app.ts'
import type { MoodyPlatform } from './moody-platform.ts'

/** A send that was accepted. */
export interface AcceptedSend {
  id: string
  text: string
  person: string
}

/** A message of a customer, and what was told of it since. */
export interface Written {
  upstreamId: string
  person: string
  text: string
  /** Epoch seconds. */
  at: number
  isPicture: boolean
  /** Whether the platform has told of it already. */
  isTold: boolean
  edits: { id: string; text: string; at: number }[]
  isRevoked: boolean
}

/** An organization of a check at random, with one number. */
export interface Tenant {
  state: Account
  people: string[]
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
}

/** Two organizations; of the second, what nobody can tell is sent again. */
export async function setScene(parts: Pick<Scene, 'apps' | 'base' | 'sql' | 'platform'>): Promise<Scene> {
  const scene: Scene = { ...parts, tenants: [], told: new Map(), abandoned: new Set() }
  for (const [n, unknown] of (['fail', 'resend'] as const).entries()) {
    const usual = newAccountState()
    const state = {
      ...usual,
      phone_number_id: `10000000000${n}`,
      business_account_id: `20000000000${n}`,
      settings: { ...usual.settings, unknown_outcome: unknown, messages_per_month: 1_000_000 },
    }
    state.sealed_token = seal(parts.base.sealKeys, 'token', `account:${state.account_id}`)
    const people = Array.from({ length: 4 }, (_, k) => `1555100${n}00${k}`)
    const tenant: Tenant = {
      state,
      people,
      sends: [],
      written: [],
      asking: new Map(),
      changing: Promise.resolve(),
      refusals: new Set(),
    }
    scene.tenants.push(tenant)
    await changeNumber(scene, tenant, {})
  }
  return scene
}

/** Platform tells of a change of the number, until it is answered. */
export function changeNumber({ apps }: Scene, tenant: Tenant, changes: Partial<Account>): Promise<unknown> {
  const { state } = tenant
  tenant.changing = tenant.changing.then(() => {
    Object.assign(state, changes, { version: state.version + 1 })
    if (state.refusal !== null) tenant.refusals.add(state.refusal)
    const body = { ...state }
    return insist((asked) => {
      const app = apps[asked % apps.length]
      if (!app) throw new Error('there is no instance')
      return putSender(app, { params: {}, query: {}, body }, systemCaller(state.organization_id))
    })
  })
  return tenant.changing
}

export function callerOf({ state }: Tenant): Caller {
  const key = randomUUID()
  return { ...systemCaller(state.organization_id), deadline: Infinity, idempotency: { key, fingerprint: key } }
}

/** The platform tells something of the tenant's number, surely, and perhaps more than once. */
export async function tell(app: App, { state }: Tenant, value: object): Promise<void> {
  const metadata = { display_phone_number: state.phone_number?.slice(1), phone_number_id: state.phone_number_id }
  const whole = { messaging_product: 'whatsapp', metadata, ...value }
  const entry = [{ id: state.business_account_id, changes: [{ field: 'messages', value: whole }] }]
  const body = Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }))
  await insist(() => app.acceptCallback({ body, split: splitCallback(body) }))
  app.callbacks.wake()
}

/** The platform tells of a customer's message. */
export async function tellWritten(app: App, tenant: Tenant, written: Written): Promise<void> {
  written.isTold = true
  const { upstreamId, person, text, at, isPicture } = written
  const content = isPicture
    ? { type: 'image', image: { id: `file of ${upstreamId}`, mime_type: 'image/png', caption: text } }
    : { type: 'text', text: { body: text } }
  await tellMessage(app, tenant, person, { id: upstreamId, timestamp: String(at), ...content })
}

export const tellMessage = (app: App, tenant: Tenant, person: string, message: object): Promise<void> =>
  tell(app, tenant, {
    contacts: [{ profile: { name: 'Ana' }, wa_id: person }],
    messages: [{ from: person, ...message }],
  })
