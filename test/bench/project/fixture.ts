import { call, systemCaller } from '@app/shared/ask.ts'
import { connectAccount } from '@app/shared/contracts/platform.ts'
import { withBus } from '@app/deploy/stack/bus.ts'
import { z } from 'zod'
import type { Options } from '../options.ts'
import { drain } from './backlog.ts'
import { control } from './control.ts'
import type { Project } from './project.ts'
import { until } from './until.ts'

export interface Recipient {
  phoneNumberId: string
  /** `+E164`. */
  to: string
}

export interface ConnectedNumber {
  phoneNumberId: string
  businessAccountId: string
  displayPhoneNumber: string
}

/** What the bench sends from and to. */
export interface Fixture {
  /** Connected, all of the demo organization. */
  numbers: ConnectedNumber[]
  /** Contacts whose window is open; the numbers take turns. */
  recipients: Recipient[]
}

/** Fifty numbers, so that their pace (80 a second each) does not hold the dispatcher back, nor a contact's (45 at once). */
const whole = { numbers: 50, contactsANumber: 200 }
const little = { numbers: 10, contactsANumber: 30 }

const atOnce = 16
const writeInTimeoutMs = 180_000

const connected = z.object({
  phone_number_id: z.string(),
  business_account_id: z.string(),
  display_phone_number: z.string(),
  access_token: z.string(),
})

/** Connects numbers, and lets contacts write to each. */
export async function makeFixture(project: Project, { quick }: Options): Promise<Fixture> {
  const { numbers: count, contactsANumber } = quick ? little : whole
  const { simulator_url: simulatorUrl } = project.stack()
  const numbers = await connectNumbers(project, count)
  const recipients = Array.from({ length: contactsANumber }, (_, contact) =>
    numbers.map(({ phoneNumberId }, number) => ({ phoneNumberId, to: phoneOf(number, contact) })),
  ).flat()
  const before = await inboundMessages(project)
  await inParallel(recipients, ({ phoneNumberId, to }) =>
    control(simulatorUrl, 'POST', 'inbound', {
      phone_number_id: phoneNumberId,
      message: { from: to.slice(1), type: 'text', text: { body: 'Hello' } },
      contact: { wa_id: to.slice(1), profile: { name: `Contact ${to}` } },
    }),
  )
  await until(
    'the contacts’ messages are in',
    async () => (await inboundMessages(project)) - before >= recipients.length,
    writeInTimeoutMs,
  )
  await drain(project)
  return { numbers, recipients }
}

const phoneOf = (number: number, contact: number) => `+1${201 + number}${2_000_000 + contact}`

async function connectNumbers(project: Project, count: number) {
  const { organization_id, simulator_url: simulatorUrl, nats_url: natsUrl } = project.stack()
  return withBus(natsUrl, async (bus) => {
    const numbers: ConnectedNumber[] = []
    for (let n = 0; n < count; n++) {
      const number = connected.parse(await control(simulatorUrl, 'POST', 'numbers', {}))
      const { phone_number_id, business_account_id, display_phone_number, access_token } = number
      const body = { organization_id, phone_number_id, business_account_id, access_token }
      await call(bus, connectAccount, { body }, systemCaller(), { timeoutMs: 20_000 })
      numbers.push({
        phoneNumberId: phone_number_id,
        businessAccountId: business_account_id,
        displayPhoneNumber: display_phone_number,
      })
    }
    return numbers
  })
}

async function inboundMessages(project: Project) {
  const [row] = await project.sql()<{ count: number }[]>`
    select count(*)::int as count from messaging.messages where direction = 'inbound'
  `
  return row?.count ?? 0
}

async function inParallel<T>(items: T[], work: (item: T) => Promise<unknown>) {
  const all = items.values()
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const item of all) await work(item)
    }),
  )
}
