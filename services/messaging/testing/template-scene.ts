import type { Sql } from '@app/shared/database/database.ts'
import { sealToken } from '@app/shared/secrets/account-token.ts'
import { newId } from '@app/shared/values/ids.ts'
import { type Account, newAccountState } from '@app/test/account-state.ts'
import { insist } from '@app/test/each-step.ts'
import type { App } from '../app.ts'
import type { TestMessaging } from './app.ts'
import { platformOf } from './callbacks.ts'
import type { MoodyTemplates, Telling } from './moody-templates.ts'
import { putState } from './scene.ts'
import { type Asked, askFor } from './templates.ts'

/** A number of a check of templates at random. */
export interface TemplateNumber {
  state: Account
  /** As each instance is asked for it. */
  asks: ReturnType<typeof askFor>[]
  /** The end of its changes: platform tells one after the other. */
  changing: Promise<unknown>
  /** Whether it was ever disconnected. */
  wasAway: boolean
}

/** A creation by a key, which is asked for until it has an answer, and again. */
export interface WantedTemplate {
  key: string
  number: TemplateNumber
  body: { name: string; language: string; category: string; components: unknown }
  text: string
  answer: Asked['data'] | null
  /** When it had it, `performance.now()`. */
  answeredAt: number
  /** What it was answered before. */
  failures: string[]
  /** When it was last told that the name is taken. */
  takenAt: number
}

export interface TemplateScene {
  apps: App[]
  /** A session of its own, which nobody ends. */
  sql: Sql
  platform: MoodyTemplates
  numbers: TemplateNumber[]
  wanted: WantedTemplate[]
  /** What the platform has to tell and has not told, or not often enough. */
  untold: Telling[]
  /** Keys whose lease was taken while they were under way. */
  stolen: Set<string>
  /** What it has told. */
  told: Telling[]
  /** Messages that were accepted, by their ids. */
  accepted: Map<string, { number: TemplateNumber; name: string; language: string }>
  /** What was found wrong on the way. */
  broken: string[]
}

/** By organization and business account: two numbers of one, two organizations of one, one organization of two. */
const places = [
  [0, 1],
  [0, 1],
  [1, 1],
  [1, 2],
  [2, 2],
] as const

export async function setTemplateScene(
  parts: Pick<TemplateScene, 'apps' | 'sql' | 'platform'>,
  { sealKeys }: TestMessaging,
): Promise<TemplateScene> {
  const organizations = [newId('org'), newId('org'), newId('org')]
  const numbers = places.map(([organization, account], n): TemplateNumber => {
    const state = newAccountState({
      organization_id: organizations[organization] ?? '',
      business_account_id: `20000000000${account}`,
      phone_number_id: `10000000000${n}`,
      phone_number: `+1555000000${n}`,
      version: 0,
    })
    state.sealed_token = sealToken(sealKeys, 'token', state.account_id)
    const asks = parts.apps.map((app) => askFor(app, state.organization_id, state.phone_number_id))
    return { state, asks, changing: Promise.resolve(), wasAway: false }
  })
  const scene = {
    ...parts,
    numbers,
    wanted: [],
    untold: [],
    told: [],
    stolen: new Set<string>(),
    accepted: new Map<string, never>(),
    broken: [],
  }
  for (const number of numbers) await connect(scene, number)
  return scene
}

const change = ({ apps }: Pick<TemplateScene, 'apps'>, number: TemplateNumber, changes: Partial<Account>) => {
  number.changing = number.changing.then(() => putState(apps, number.state, changes))
  return number.changing
}

export const connect = (scene: Pick<TemplateScene, 'apps'>, number: TemplateNumber) =>
  change(scene, number, { attached: true, refusal: null, attached_at: new Date().toISOString() })

export const disconnect = (scene: Pick<TemplateScene, 'apps'>, number: TemplateNumber) => {
  number.wasAway = true
  return change(scene, number, { attached: false, refusal: 'account_not_connected' })
}

/** The platform posts it, surely, and perhaps more than once. */
export async function tellOf(app: App, { account, field, value, time }: Telling): Promise<void> {
  const entry = [{ id: account, time, changes: [{ field, value }] }]
  await insist(() => platformOf(app).post({ object: 'whatsapp_business_account', entry }))
}
