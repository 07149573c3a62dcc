import { between, oneOf, type Random } from '@app/test/faults/random.ts'
import { asking, newNumber, type TestDirectory } from './app.ts'
import { telling } from './changes.ts'
import { managing, tellTeam } from './managing.ts'

/** Somebody who writes and is written to, under all names that they ever have. */
export interface Person {
  /** As people write it, with the nine that Brazil's numbers were given. */
  phone: string
  /** As the platform writes it. */
  waId: string
  bsuid: string
  /** The number that the platform may say they have now; null: they never change it. */
  laterPhone: string | null
}

interface Message {
  sentAt: string
  countsUnread: boolean
  isRead: boolean
}

/** What somebody said on marketing; of two the later one holds. */
interface Word {
  value: 'stop' | 'resume'
  at: string
}

/** A number that three instances change at once, and what was made and said of it, as the answers told it. */
export interface World {
  directory: TestDirectory
  organizationId: string
  phoneNumberId: string
  instances: Instance[]
  people: Person[]
  labels: string[]
  contacts: string[]
  conversations: string[]
  /** By the conversation that each came into. */
  messages: Map<string, Message[]>
  /** When the newest message was sent in each. */
  sent: Map<string, string>
  words: Map<Person, Word[]>
  saidSoFar: number
}

type Instance = ReturnType<typeof newInstance>

export async function newWorld(directory: TestDirectory, countOfPeople: number): Promise<World> {
  const number = await newNumber(directory.app)
  await tellTeam(directory, number.organizationId, number.state.team_id)
  const instances = [1, 2, 3].map(() => newInstance(directory, number))
  const [one] = instances
  const labels = [await one?.label('VIP'), await one?.label('Paid')]
  return {
    directory,
    organizationId: number.organizationId,
    phoneNumberId: number.phoneNumberId,
    instances,
    people: Array.from({ length: countOfPeople }, (_, n) => newPerson(n)),
    labels: labels.flatMap((label) => (label ? [label.id] : [])),
    contacts: [],
    conversations: [],
    messages: new Map(),
    sent: new Map(),
    words: new Map(),
    saidSoFar: 0,
  }
}

function newInstance(directory: TestDirectory, number: Awaited<ReturnType<typeof newNumber>>) {
  const app = directory.newInstance()
  return {
    app,
    ...asking(app, number.organizationId, number.phoneNumberId),
    ...managing(app, { ...number, teamId: number.state.team_id }),
    ...telling(app, number),
  }
}

/** Every third one is written in two ways, every fourth one may get another number. */
function newPerson(n: number): Person {
  const isBrazilian = n % 3 === 0
  const phone = isBrazilian ? `55119${80_000_000 + n}` : `1555${1_000_000 + n}`
  return {
    phone,
    waId: isBrazilian ? `5511${80_000_000 + n}` : phone,
    bsuid: `US.${n}`,
    laterPhone: n % 4 === 1 ? `1666${1_000_000 + n}` : null,
  }
}

export const instanceOf = ({ instances }: World, random: Random): Instance => oneOf(random, instances)

/** One of what was made so far, which may be gone again; often one of the newest, which others meet as well. */
export function oneMade(random: Random, made: readonly string[]): string | null {
  const some = random() < 0.5 ? made.slice(-8) : made
  return some.length === 0 ? null : oneOf(random, some)
}

/** A number that the person has, in one of the ways in which it is written. */
export function numberOf({ phone, waId, laterPhone }: Person, random: Random): string {
  if (laterPhone !== null && random() < 0.5) return laterPhone
  return random() < 0.5 ? phone : waId
}

/** A number, a user id, or both. */
export function namesOf(person: Person, random: Random): { wa_id: string | null; bsuid: string | null } {
  const kind = between(random, 0, 2)
  return { wa_id: kind === 0 ? null : numberOf(person, random), bsuid: kind === 1 ? null : person.bsuid }
}

/** What was answered of a contact and its conversation is there from now on. */
export function note(world: World, made: { contact: { id: string }; conversation: { id: string } }): void {
  world.contacts.push(made.contact.id)
  world.conversations.push(made.conversation.id)
}

/** Notes a word on marketing, each a second later than the last; answers when it was said. */
export function say(world: World, person: Person, value: Word['value']): string {
  const at = new Date(Date.UTC(2026, 2, 1, 12) + ++world.saidSoFar * 1_000).toISOString()
  world.words.set(person, [...(world.words.get(person) ?? []), { value, at }])
  return at
}
