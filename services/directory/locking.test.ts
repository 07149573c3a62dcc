import { afterAll, beforeAll, expect, test } from 'vitest'
import { detachDeletedLabels } from './labels/detach-deleted-labels.ts'
import { asking, eventsOf, newNumber, testDirectory, type TestDirectory } from './testing/app.ts'
import { telling } from './testing/changes.ts'
import { managing, tellTeam } from './testing/managing.ts'
import { at as moment } from './testing/moments.ts'

/** Contacts are locked before conversations, several of one kind in the order of their ids: so nobody waits in a circle. */
let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
  // A service waits for a lock as long as Postgres does before it looks for a circle: here longer, so that what ends the test is
  // one, and not that the machine is busy.
  Object.assign(directory.sql.options.connection, { lock_timeout: '20s', statement_timeout: '20s' })
})
afterAll(() => directory.drop())

const people = 60
const phoneOf = (n: number) => `1555${1_000_000 + n}`

test('bulk labels, patches, messages, merges, deletions, address books and a label that goes never lock each other out', async () => {
  const number = await newNumber(directory.app)
  await tellTeam(directory, number.organizationId, number.state.team_id)
  const asker = { ...number, teamId: number.state.team_id }
  const instances = [1, 2, 3].map(() => {
    const app = directory.newInstance()
    return {
      app,
      ...asking(app, number.organizationId, number.phoneNumberId),
      ...managing(app, asker),
      ...telling(app, number),
    }
  })
  const at = (n: number) => instances[n % 3] ?? Promise.reject(new Error('no instance'))
  const one = instances[0]
  if (!one) throw new Error('no instance')
  // Two contacts for each person, which a message with both names makes one.
  const contacts: string[] = []
  const conversations: string[] = []
  for (let n = 0; n < people; n++) {
    const phone = await one.inbound({ wa_id: phoneOf(n) })
    const bsuid = await one.inbound({ bsuid: `US.${n}` })
    contacts.push(phone.contact.id, bsuid.contact.id)
    conversations.push(phone.conversation.id, bsuid.conversation.id)
  }
  const labels = [await one.label('VIP'), await one.label('Paid')].map(({ id }) => id)
  const { id: dying } = await one.label('Dying')
  await one.bulk(contacts, dying, 'attach')

  const work: (() => Promise<unknown>)[] = []
  for (let n = 0; n < 30; n++) {
    const ids = n % 2 ? contacts : contacts.toReversed()
    work.push(async () => (await at(n)).bulk(ids, labels[n % 2] ?? '', n % 3 ? 'attach' : 'detach'))
  }
  for (let n = 0; n < 160; n++) {
    const id = contacts[(n * 31) % contacts.length] ?? ''
    work.push(async () => (await at(n)).update(id, { name: `name ${n}` }).catch(unlessGone))
    const conversationId = conversations[(n * 17) % conversations.length] ?? ''
    const body = n % 2 ? { status: 'resolved' as const } : { assigned_to: `user ${n}` }
    work.push(async () => (await at(n)).updateConversation(conversationId, body))
    work.push(async () => (await at(n)).inbound({ wa_id: phoneOf(n % people) }))
  }
  for (let n = 0; n < people; n++) {
    work.push(async () => (await at(n)).inbound({ wa_id: phoneOf(n), bsuid: `US.${n}` }))
    if (n % 10 === 0) work.push(async () => (await at(n)).remove(contacts[2 * n] ?? '').catch(unlessGone))
  }
  // Half of these are no contacts yet; what one book adds the next removes.
  const known = Array.from({ length: 2 * people }, (_, n) => phoneOf(n))
  for (let n = 0; n < 12; n++) {
    const action = n % 2 ? ('remove' as const) : ('add' as const)
    const time = moment(n)
    const book = known.map((wa_id) => ({ wa_id, name: `book ${n}`, action, at: time }))
    work.push(async () => (await at(n)).contacts(n % 3 ? book : book.toReversed()))
  }
  for (let n = 0; n < people; n += 3) {
    const [before, after] = [{ wa_id: phoneOf(n) }, { wa_id: `1666${1_000_000 + n}` }]
    work.push(async () => (await at(n)).change(`change ${n}`, before, after))
  }
  work.push(async () => {
    await one.deleteLabel(dying)
    await Promise.all(
      instances.map(async ({ app }) => {
        while ((await detachDeletedLabels(app)) > 0);
      }),
    )
  })
  const results = await Promise.allSettled(shuffled(work).map((run) => run()))
  expect(results.flatMap((result) => (result.status === 'rejected' ? [String(result.reason)] : []))).toEqual([])

  const [deadlocks] = await directory.sql<{ count: string }[]>`
    select deadlocks as count from pg_stat_database where datname = current_database()
  `
  expect(Number(deadlocks?.count)).toBe(0)
  expect(await directory.sql`select label_id from contact_labels where label_id = ${dying}`).toEqual([])
  const assigned = (await eventsOf(directory, number.organizationId)).filter(
    ({ type }) => type === 'conversation.assigned',
  )
  expect(assigned.length).toBeGreaterThan(0)
}, 60_000)

/** A contact that was merged or deleted meanwhile. */
function unlessGone(err: unknown) {
  if (!(err instanceof Error && 'failure' in err && err.failure === 'resource_not_found')) throw err
}

const shuffled = <T>(items: T[]) =>
  items
    .map((item) => ({ item, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item)
