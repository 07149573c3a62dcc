import { systemCaller } from '@app/shared/bus/ask.ts'
import { listMessages as contract } from '@app/shared/contracts/messaging.ts'
import { newId } from '@app/shared/values/ids.ts'
import { until } from '@app/test/until.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listMessages } from '../messages/list-messages.ts'
import { sendReadReceipt } from '../messages/send-read-receipt.ts'
import { organizationId, phoneNumberId, type TestMessaging, testMessaging } from '../testing/app.ts'
import { leaveToOwner } from './leave-to-owner.ts'
import { wakeSleepers } from './process-callbacks.ts'
import { inboundValue, platformOf, statusPart } from '../testing/callbacks.ts'

let app: TestMessaging
let platform: ReturnType<typeof platformOf>
const other = newId('org')
beforeAll(async () => {
  app = await testMessaging()
  platform = platformOf(app)
})
afterAll(() => app.close())

const ownersOf = (upstreamId: string) => app.sql`select organization_id from messages where upstream_id = ${upstreamId}`
const isTold = async (id: string) => (await app.events()).some((event) => event.id === id)

/** The callbacks of the number wait while something of ours is away; whoever is at them ends first. */
const hold = () =>
  until(async () => {
    const { count } = await app.sql`
      insert into callback_lanes as l (id, grp, held_until)
      values (${phoneNumberId}, ${organizationId}, now() + interval '1 hour')
      on conflict (id) do update set held_until = excluded.held_until where l.held_until < now()
    `
    expect(count).toBe(1)
  })
async function goOn() {
  await app.sql`update callback_lanes set held_until = '-infinity', due_at = now()`
  app.callbacks.wake()
}

async function laneOf(id: string) {
  const [lane] = await app.sql<{ arrivals: string; isHeld: boolean }[]>`
    select arrivals, held_until > now() as is_held from callback_lanes where id = ${id}
  `
  return lane ?? { arrivals: '0', isHeld: false }
}

test('what came for an organization is not told to the one that has the number afterwards, and waits for its own', async () => {
  await hold()
  await platform.messages(inboundValue('wamid.BEFORE', 'to the first'))
  await app.setSender({ attached: false, refusal: 'account_not_connected' })
  await app.setSender({ organization_id: other })
  await goOn()
  await platform.messages(inboundValue('wamid.AFTER', 'to the second'))
  await until(async () => expect(await ownersOf('wamid.AFTER')).toEqual([{ organizationId: other }]))
  expect(await isTold('wamid.BEFORE')).toBe(false)
  await app.setSender({ organization_id: other, attached: false })
  await app.setSender({})
  await goOn()
  await until(async () => expect(await ownersOf('wamid.BEFORE')).toEqual([{ organizationId }]))
})

test('what was exchanged by a number is shown to the organization that had it then, and to no other', async () => {
  await app.setSender({ attached: false })
  await app.setSender({ organization_id: other })
  const query = contract.query.parse({})
  const seenBy = async (organization: string) => {
    const asked = { params: { phone_number_id: phoneNumberId }, query, body: undefined }
    const page = await listMessages(app, asked, systemCaller(organization))
    return 'whole' in page ? [] : page.data.map(({ content }) => content)
  }
  expect(await seenBy(organizationId)).toEqual(['to the first'])
  expect(await seenBy(other)).toEqual(['to the second'])
  const receipt = { status: 'read' as const, message_id: 'wamid.BEFORE' }
  await expect(sendReadReceipt(app, phoneNumberId, receipt, systemCaller(other))).rejects.toMatchObject({
    failure: 'resource_not_found',
  })
  await app.setSender({ organization_id: other, attached: false })
  await app.setSender({})
})

test('what is set apart, since its message is not known yet, stays with its organization, too', async () => {
  await platform.messages({ statuses: [statusPart('wamid.APART', 'delivered')] })
  const lane = `${organizationId}:wamid.APART`
  await until(async () => expect(await app.sql`select 1 from callback_items where lane = ${lane}`).toHaveLength(1))
  await app.setSender({ organization_id: other })
  await goOn()
  await platform.messages(inboundValue('wamid.LATER', 'to the second'))
  await until(async () => expect(await ownersOf('wamid.LATER')).toEqual([{ organizationId: other }]))
  await until(async () =>
    expect(await app.sql`select 1 from callback_lanes where id = ${lane} and held_until < now()`).toHaveLength(1),
  )
  expect(await app.sql`select lane from callback_items where lane like '%:%'`).toEqual([{ lane }])
})

test('what is left to the organization that had the number is worked through, though its lane was just being cleared away', async () => {
  await app.setSender({})
  await hold()
  await platform.messages(inboundValue('wamid.LEFT', 'to the first'))
  await app.sql`
    insert into callback_lanes (id, grp) values (${`${organizationId}:${phoneNumberId}`}, ${organizationId})
    on conflict (id) do update set due_at = null
  `
  let isCleared = false
  let clearing = Promise.resolve(0)
  await app.sql.begin(async (tx) => {
    await leaveToOwner(tx, { organizationId: other, phoneNumberId })
    clearing = wakeSleepers(app.sql).finally(() => {
      isCleared = true
    })
    await until(async () => {
      const waiting = await app.sql`
        select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
      `
      expect(isCleared || waiting.length > 0).toBe(true)
    })
  })
  await clearing
  app.callbacks.wake()
  await until(async () => expect(await ownersOf('wamid.LEFT')).toEqual([{ organizationId }]), 5_000)
})

test('what waits for an organization when its number moves on is left to that one, whoever had the number before', async () => {
  await app.setSender({})
  await goOn()
  await platform.messages(inboundValue('wamid.MINE', 'to the first'))
  await until(async () => expect(await ownersOf('wamid.MINE')).toEqual([{ organizationId }]))
  await app.setSender({ organization_id: other })
  await hold()
  await platform.messages(inboundValue('wamid.THEIRS', 'to the second'))
  await app.setSender({})
  const lane = `${other}:${phoneNumberId}`
  expect(await app.sql`select lane from callback_items where lane in (${lane}, ${phoneNumberId})`).toEqual([{ lane }])
  await goOn()
  await platform.messages(inboundValue('wamid.AGAIN', 'to the first'))
  await until(async () => expect(await ownersOf('wamid.AGAIN')).toEqual([{ organizationId }]))
  expect(await ownersOf('wamid.THEIRS')).toEqual([])
})

test('what is just being kept for an organization while its number moves is told to that one alone', async () => {
  await goOn()
  let keeping: Promise<unknown> = Promise.resolve()
  await app.sql.begin(async (tx) => {
    await tx`select from callback_lanes where id = ${phoneNumberId} for update`
    keeping = platform.messages(inboundValue('wamid.OVERLAP', 'to the first'))
    await untilSomebodyWaits(app.sql)
    await app.setSender({ organization_id: other })
  })
  await keeping
  await platform.messages(inboundValue('wamid.NEXT', 'to the second'))
  await until(async () => expect(await ownersOf('wamid.NEXT')).toEqual([{ organizationId: other }]))
  expect(await ownersOf('wamid.OVERLAP')).toEqual([])
  await wakeSleepers(app.sql)
  await app.setSender({})
  await goOn()
  await until(async () => expect(await ownersOf('wamid.OVERLAP')).toEqual([{ organizationId }]))
})

test('what waits for a number that was detached is worked through when it comes back, and nothing has to be rescued', async () => {
  await app.setSender({})
  await goOn()
  await hold()
  await platform.messages(inboundValue('wamid.KEPT', 'while it was away'))
  await platform.messages({ statuses: [statusPart('wamid.KEPT-APART', 'delivered')] })
  await app.setSender({ attached: false, refusal: 'account_not_connected' })
  await goOn()
  const asleep = () => app.sql`select 1 from callback_lanes where id = ${phoneNumberId} and due_at is null`
  await until(async () => expect(await asleep()).toHaveLength(1))
  expect(await ownersOf('wamid.KEPT')).toEqual([])
  await app.putSender({})
  await until(async () => expect(await ownersOf('wamid.KEPT')).toEqual([{ organizationId }]))
  await until(async () => expect(await app.sql`select 1 from callback_items where lane = ${phoneNumberId}`).toEqual([]))
  expect(await wakeSleepers(app.sql)).toBe(0)
})

test('so is what somebody looks at just when its number comes back', async () => {
  await hold()
  await platform.messages(inboundValue('wamid.LOOKED-AT', 'while it was away'))
  await app.setSender({ attached: false, refusal: 'account_not_connected' })
  const { arrivals: before } = await laneOf(phoneNumberId)
  await app.setSender({})
  // Held still: who gives the lane back finds that something came.
  const { arrivals, isHeld } = await laneOf(phoneNumberId)
  expect([isHeld, Number(arrivals) > Number(before)]).toEqual([true, true])
  await goOn()
})

test('of what lies in the lane of a number that has moved only what came before that is left to who had it then', async () => {
  await app.setSender({ organization_id: other })
  await app.setSender({})
  await hold()
  await app.sql`
    update senders set owned_since = now() - case organization_id when ${other} then interval '3 hours' else interval '1 hour' end
    where phone_number_id = ${phoneNumberId}
  `
  await app.sql`
    insert into callback_items (callback_id, lane, kind, item, received_at)
    values (0, ${phoneNumberId}, 'status', '{}', now() - interval '2 hours'), (0, ${phoneNumberId}, 'status', '{}', now())
  `
  await wakeSleepers(app.sql)
  const lanes = await app.sql`
    with gone as (delete from callback_items where callback_id = 0 returning seq, lane) select lane from gone order by seq
  `
  expect(lanes).toEqual([{ lane: `${other}:${phoneNumberId}` }, { lane: phoneNumberId }])
})

test('what came when nobody had the number stays where it is, and is in nobody’s way', async () => {
  await app.sql`update senders set owned_since = now() where phone_number_id = ${phoneNumberId}`
  await app.sql`
    insert into callback_items (callback_id, lane, kind, item, received_at)
    values (0, ${phoneNumberId}, 'status', '{}', now() - interval '1 hour')
  `
  await wakeSleepers(app.sql)
  expect(await app.sql`delete from callback_items where callback_id = 0 returning lane`).toEqual([
    { lane: phoneNumberId },
  ])
})
