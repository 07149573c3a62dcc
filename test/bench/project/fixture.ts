import type { Options } from '../options.ts'
import { type ConnectedNumber, connectNumbers } from './connect-numbers.ts'
import type { Project } from './project.ts'
import { type Recipient, writeIn } from './write-in.ts'

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

/** Connects numbers, and lets contacts write to each. */
export async function makeFixture(project: Project, { quick }: Options): Promise<Fixture> {
  const { numbers: count, contactsANumber } = quick ? little : whole
  const numbers = await connectNumbers(project, count)
  const recipients = Array.from({ length: contactsANumber }, (_, contact) =>
    numbers.map(({ phoneNumberId }, number) => ({ phoneNumberId, to: phoneOf(number, contact) })),
  ).flat()
  await writeIn(project, recipients)
  return { numbers, recipients }
}

/** Another for each pair. */
export const phoneOf = (number: number, contact: number): string => `+1${201 + number}${2_000_000 + contact}`
