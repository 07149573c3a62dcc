import { setTimeout as sleep } from 'node:timers/promises'
import { isDatabaseAway } from '@app/shared/database/database.ts'
import { newId } from '@app/shared/values/ids.ts'
import { newAccountState } from '@app/test/account-state.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { storeSender } from '../senders/put-sender.ts'
import { accept, type TestMessaging, testMessaging } from '../testing/app.ts'
import { newSend } from '../testing/sends.ts'

let app: TestMessaging
beforeAll(async () => {
  app = await testMessaging()
})
afterAll(() => app.close())

const keyed = (key: string) => ({ key, fingerprint: 'same', answer: '{}' })

test('a key that another operation holds open is refused soon, and holds up the sends of no other tenant', async () => {
  const other = newAccountState({ phone_number_id: '106540352242923' })
  await app.sql.begin((tx) => storeSender(tx, { current: '', byId: new Map() }, other))
  const { organizationId: organization_id, phoneNumberId: phone_number_id } = app.number
  const own = (key: string) => newSend('own', '+15550123401', { organization_id, phone_number_id, ...keyed(key) })
  const others = () =>
    newSend('others', '+15550123402', {
      organization_id: other.organization_id,
      phone_number_id: other.phone_number_id,
      ...keyed(newId('req')),
    })
  const held = newId('req')
  await app.sql.begin(async (tx) => {
    await tx`
      insert into idempotency.keys (organization_id, key, fingerprint, status, answer)
      values (${organization_id}, ${held}, 'another', 200, '')
    `
    const times: number[] = []
    for (let n = 0; n < 3; n++) {
      const startedAt = performance.now()
      const told = await Promise.allSettled([own(held), others(), own(newId('req')), others()].map(app.acceptSend))
      times.push(performance.now() - startedAt)
      expect(told).toMatchObject([
        { reason: { failure: 'idempotency_in_progress' } },
        { value: 'accepted' },
        { value: 'accepted' },
        { value: 'accepted' },
      ])
    }
    // The quickest, since the machine may be busy with other things.
    expect(Math.min(...times)).toBeLessThan(900)
  })
  expect(await app.acceptSend(own(held))).toBe('key_taken')
})

test('a lane that is locked for longer than a key may be is waited for', async () => {
  const { organizationId: organization_id, phoneNumberId: phone_number_id } = app.number
  const first = newSend('first', '+15550123403', { organization_id, phone_number_id, ...keyed('first') })
  const second = { ...first, ...keyed('second'), id: newId('msg') }
  expect(await app.acceptSend(first)).toBe('accepted')
  const { accepting } = await app.sql.begin(async (tx) => {
    await tx`select from send_lanes where id = ${first.conversation_id} for update`
    const accepting = app.acceptSend(second)
    await tx`select pg_sleep(0.6)`
    return { accepting }
  })
  expect(await accepting).toBe('accepted')
})

test('a lane that is locked for too long is no key that runs: the same send may be tried again', async () => {
  const { organizationId: organization_id, phoneNumberId: phone_number_id } = app.number
  const first = newSend('first', '+15550123404', { organization_id, phone_number_id, ...keyed('earlier') })
  const second = { ...first, ...keyed('later'), id: newId('msg') }
  expect(await app.acceptSend(first)).toBe('accepted')
  await app.sql.begin(async (tx) => {
    await tx`select from send_lanes where id = ${first.conversation_id} for update`
    await expect(app.acceptSend(second)).rejects.toSatisfy(isDatabaseAway)
  })
  expect(await app.acceptSend(second)).toBe('accepted')
})

test('sends of a conversation go out in the order in which they came, also when the first had to wait for a lane', async () => {
  app.respondWith(accept)
  const { organizationId: organization_id, phoneNumberId: phone_number_id } = app.number
  const [busy = '', lane = ''] = [newId('cnv'), newId('cnv')].toSorted()
  const [first, other, second] = [lane, busy, lane].map((conversation_id) =>
    newSend('in order', '+15550123403', { organization_id, phone_number_id, conversation_id }),
  )
  if (!first || !other || !second) throw new Error('three are made')
  await app.sql`insert into send_lanes (id, grp) values (${busy}, ${phone_number_id})`
  const accepting: Promise<unknown>[] = []
  await app.sql.begin(async (tx) => {
    await tx`select from send_lanes where id = ${busy} for update`
    accepting.push(app.acceptSend(first), app.acceptSend(other))
    await untilSomebodyWaits(app.sql)
    accepting.push(app.acceptSend(second))
    await sleep(100)
  })
  await Promise.all(accepting)
  const called = () => app.calls.map(({ messageId }) => messageId).filter((id) => id === first.id || id === second.id)
  await until(() => expect(called()).toEqual([first.id, second.id]))
})

test('a send does not wait behind all of another organization that came before it', async () => {
  const other = newAccountState({ phone_number_id: '106540352242924' })
  await app.sql.begin((tx) => storeSender(tx, { current: '', byId: new Map() }, other))
  const { organizationId: organization_id, phoneNumberId: phone_number_id } = app.number
  const { organization_id: its, phone_number_id: itsNumber } = other
  let accepted = 0
  const flood = Array.from({ length: 700 }, async () => {
    await app.acceptSend(newSend('one of many', '+15550123405', { organization_id, phone_number_id }))
    accepted++
  })
  const one = newSend('the only one', '+15550123406', { organization_id: its, phone_number_id: itsNumber })
  expect(await app.acceptSend(one)).toBe('accepted')
  expect(accepted).toBeLessThan(300)
  await Promise.all(flood)
})
