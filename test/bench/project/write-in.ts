import { inParallel } from '../load/in-parallel.ts'
import { drain } from './backlog.ts'
import { control } from './control.ts'
import type { Project } from './project.ts'
import { until } from './until.ts'

export interface Recipient {
  phoneNumberId: string
  /** `+E164`. */
  to: string
}

const atOnce = 16
const timeoutMs = 180_000

/** Each writes to the number once, so that its window is open; resolves when all that came of it is done. */
export async function writeIn(project: Project, recipients: Recipient[]): Promise<void> {
  const { simulator_url: simulatorUrl } = project.stack()
  const before = await inboundMessages(project)
  await inParallel(atOnce, recipients, ({ phoneNumberId, to }) =>
    control(simulatorUrl, 'POST', 'inbound', {
      phone_number_id: phoneNumberId,
      message: { from: to.slice(1), type: 'text', text: { body: 'Hello' } },
      contact: { wa_id: to.slice(1), profile: { name: `Contact ${to}` } },
    }),
  )
  const areIn = async () => (await inboundMessages(project)) - before >= recipients.length
  await until('the contacts’ messages are in', areIn, timeoutMs)
  await drain(project)
}

async function inboundMessages(project: Project) {
  const [row] = await project.sql()<{ count: number }[]>`
    select count(*)::int as count from messaging.messages where direction = 'inbound'
  `
  return row?.count ?? 0
}
