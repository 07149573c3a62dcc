import { isDeepStrictEqual } from 'node:util'
import type { CustomerSeen, Law, RivalHistory } from './rival-history.ts'

type Told = CustomerSeen & { updated_at: string }

/** What the events of a customer have told so far. */
interface Known {
  customer: Told
  isOnboarded: boolean
}

interface Step {
  type: string
  /** There unless the event tells the customer itself. */
  linkId: string | undefined
  before: Known | undefined
  after: Known
  words: string
}

/** Of a customer of whom something was told before. */
type Later = Step & { before: Known }

/** The events of all customers, each with what was known of its customer before and after it. */
function stepsOf({ events }: Pick<RivalHistory, 'events'>): Step[] {
  const known = new Map<string, Known>()
  return events.map(({ type, data }) => {
    const { customer, customer_id: id, setup_link: link } = data as Partial<Data>
    const customerId = customer?.id ?? id ?? ''
    const before = known.get(customerId)
    const after = afterOf(before, type, customer)
    known.set(customerId, after)
    return { type, linkId: link?.id, before, after, words: `${type} ${JSON.stringify({ data, before })}` }
  })
}

/** What an event of platform tells, of one kind or the other. */
interface Data {
  customer: Told
  customer_id: string
  setup_link: { id: string }
}

function afterOf(before: Known | undefined, type: string, told: Told | undefined): Known {
  if (told) return { customer: told, isOnboarded: before?.isOnboarded ?? false }
  if (!before) throw new Error(`${type} of a customer that nothing was told of`)
  if (type !== 'customer.onboarded') return before
  const { customer } = before
  const status = customer.status === 'pending' ? 'active' : customer.status
  return { customer: { ...customer, status }, isOnboarded: true }
}

const seenOf = ({ id, name, status, metadata }: CustomerSeen) => ({ id, name, status, metadata })

const tellsCustomer = ({ type }: Step) => /^customer\.(created|updated|archived)$/.test(type)

/** The law that no event is so. */
const none =
  (isWrong: (step: Later) => boolean): Law =>
  (history) =>
    stepsOf(history)
      .filter((step) => step.before !== undefined && isWrong({ ...step, before: step.before }))
      .map(({ words }) => words)

const isCreatedOnce: Law = (history) =>
  stepsOf(history)
    .filter(({ type, before }) => (type === 'customer.created') !== (before === undefined))
    .map(({ words }) => words)

const changesNothing = (step: Later) =>
  tellsCustomer(step) && isDeepStrictEqual(seenOf(step.before.customer), seenOf(step.after.customer))

const goesBack = ({ before, after }: Later) => after.customer.updated_at < before.customer.updated_at

/** Of an archived one, that it was restored is told next. */
const changesArchived = (step: Later) =>
  tellsCustomer(step) &&
  step.before.customer.status === 'archived' &&
  !(step.type === 'customer.updated' && step.after.customer.status !== 'archived')

const isOnboardedAgain = ({ type, before }: Later) => type === 'customer.onboarded' && before.isOnboarded

const tellsOfShut = (step: Later) =>
  !tellsCustomer(step) && ['suspended', 'archived'].includes(step.before.customer.status)

const linksAreConsumedOnce: Law = (history) => {
  const idsOf = (type: string) => stepsOf(history).flatMap((step) => (step.type === type && step.linkId) || [])
  const consumed = idsOf('customer.setup_link.consumed')
  const created = new Set(idsOf('customer.setup_link.created'))
  const { consumedLinkIds } = history.end
  return [
    ...consumed.filter((id, n) => consumed.indexOf(id) !== n).map((id) => `${id} is consumed again`),
    ...consumed.filter((id) => !created.has(id)).map((id) => `${id} was never created`),
    ...consumed.filter((id) => !consumedLinkIds.includes(id)).map((id) => `${id} is not consumed`),
    ...consumedLinkIds.filter((id) => !consumed.includes(id)).map((id) => `nobody was told that ${id} is consumed`),
  ]
}

const theLastIsTrue: Law = (history) => {
  const last = new Map(stepsOf(history).map(({ after: { customer } }) => [customer.id, seenOf(customer)]))
  return history.end.customers
    .filter((customer) => !isDeepStrictEqual(seenOf(customer), last.get(customer.id)))
    .map((customer) => `is ${JSON.stringify(customer)}, told as ${JSON.stringify(last.get(customer.id))}`)
}

export const customerLaws: Record<string, Law> = {
  'a customer is created once, before anything else is told of it': isCreatedOnce,
  'an event that tells a customer changes it': none(changesNothing),
  'the time of the last change of a customer does not go back': none(goesBack),
  'an archived customer stays so until it is restored': none(changesArchived),
  'a customer is onboarded once': none(isOnboardedAgain),
  'nothing is told of the links of a suspended or archived customer': none(tellsOfShut),
  'a link is consumed once, and that is told': linksAreConsumedOnce,
  'what was told of a customer last is what it is': theLastIsTrue,
}
