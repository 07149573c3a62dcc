import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { call, type CallInput, systemCaller } from '@app/shared/bus/ask.ts'
import type { Rpc } from '@app/shared/api/contract.ts'
import { listConversations } from '@app/shared/contracts/conversations.ts'
import { authenticateKey, connectAccount, createKey, createOrganization } from '@app/shared/contracts/platform.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { z } from 'zod'
import { patiently } from '../patiently.ts'
import { type Bus, type BusPlace, withBus } from './bus.ts'
import { readJson, writeJson } from './json-file.ts'

const demoFile = z.object({
  organization_id: z.string(),
  api_key: z.string(),
  phone_number_id: z.string(),
  contact: z.object({ id: z.string(), phone_number: z.string() }),
  /** When the contact wrote last, by our clock. */
  window_opened_at: z.number(),
})
export type Demo = z.infer<typeof demoFile>

const contact = { phone_number: '+15550123456', name: 'Demo Contact' }
/** A window is open for 24 hours: one that is half over is opened anew. */
const windowMs = 12 * 60 * 60 * 1000
const inboundTimeoutMs = 15_000
/** Services that have just started on a busy machine are slow. */
const answerWithinMs = 30_000

export interface DemoPlace {
  dataDir: string
  bus: BusPlace
  simulatorUrl: string
}

/** An organization with an API key, a connected number, and a contact who has just written in: made once, kept in `demo.json`. */
export async function keepDemo({ dataDir, bus: place, simulatorUrl }: DemoPlace): Promise<Demo> {
  const file = join(dataDir, 'demo.json')
  return withBus(place, async (bus) => {
    const known = demoFile.safeParse(readJson(file)).data
    const isKnown = known !== undefined && (await isValid(bus, known.api_key))
    if (isKnown && Date.now() - known.window_opened_at < windowMs) return known
    const organization = isKnown ? known : await createDemo(bus, simulatorUrl)
    const demo = { ...organization, ...(await openWindow(bus, simulatorUrl, organization)) }
    writeJson(file, demo)
    return demo
  })
}

/** The database may be another one than that of the last start. */
async function isValid(bus: Bus, apiKey: string) {
  const body = { key_hash: createHash('sha256').update(apiKey).digest('hex') }
  const { state } = await ask(bus, authenticateKey, { body })
  return state === 'valid'
}

const number = z.object({ phone_number_id: z.string(), business_account_id: z.string(), access_token: z.string() })

async function createDemo(bus: Bus, simulatorUrl: string) {
  const connected = number.parse(await control(simulatorUrl, 'numbers', {}))
  const organization = await ask(bus, createOrganization, { body: { name: 'Demo', tier: 'unlimited' } })
  const { key } = await ask(bus, createKey, { body: { organization_id: organization.id, label: 'demo' } })
  const { phone_number_id, business_account_id, access_token } = connected
  const account = { organization_id: organization.id, phone_number_id, business_account_id, access_token }
  await ask(bus, connectAccount, { body: account })
  return { organization_id: organization.id, api_key: key, phone_number_id }
}

type Owner = Pick<Demo, 'organization_id' | 'phone_number_id'>

/** Lets the contact write in, and waits until the message has gone all the way to its conversation. */
async function openWindow(bus: Bus, simulatorUrl: string, { organization_id, phone_number_id }: Owner) {
  const wroteAt = Date.now()
  await control(simulatorUrl, 'inbound', {
    phone_number_id,
    message: { from: contact.phone_number.slice(1), type: 'text', text: { body: 'Hello' } },
    contact: { wa_id: contact.phone_number.slice(1), profile: { name: contact.name } },
  })
  // The platform's timestamps are whole seconds.
  const isOpen = (at: string | null) => at !== null && Date.parse(at) > wroteAt - 2_000
  const endsAt = performance.now() + inboundTimeoutMs
  while (performance.now() < endsAt) {
    const page = await ask(bus, listConversations, { params: { phone_number_id } }, organization_id)
    const found = page.data.find((one) => one.contact.phone_number === contact.phone_number)
    if (found && isOpen(found.last_inbound_at)) {
      return { contact: { id: found.contact.id, phone_number: contact.phone_number }, window_opened_at: wroteAt }
    }
    await sleep(25)
  }
  throw new Error(`The demo contact's message did not arrive within ${inboundTimeoutMs / 1000} s: see the logs.`)
}

/** Asks again what is not available at the moment. When a creation's answer was lost, what it made stays, and nobody uses it. */
const ask = <C extends Rpc>(bus: Bus, contract: C, input: CallInput<C>, organizationId?: string) =>
  patiently(() => call(bus, contract, input, systemCaller(organizationId), { timeoutMs: answerWithinMs }), mayPass)

const mayPass = (err: unknown) => err instanceof Problem && err.status >= 502

async function control(simulatorUrl: string, path: string, body: unknown): Promise<unknown> {
  const response = await fetch(`${simulatorUrl}/control/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`The simulator refused ${path}: ${response.status} ${await response.text()}`)
  return response.json()
}
