import { setTimeout as sleep } from 'node:timers/promises'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { beforeAll, expect, test } from 'vitest'
import { ask, type TestApp } from '../testing/app.ts'
import { appWithPeers } from '../testing/app-with-peers.ts'
import { beginAt, dialogOf, openSetup, showNumbers } from '../testing/onboarding.ts'
import { completeSetup } from './complete-setup.ts'
import {
  claimAbandoned,
  claimOnboarding,
  fail,
  onboardingColumns,
  onboardingIdOf,
  type OnboardingRow,
  putOff,
  sweepOnboardings,
} from './onboardings.ts'
import { startResuming } from './resume-onboardings.ts'

const both = appWithPeers()
const { asked, setupOf } = both
let it: TestApp
beforeAll(() => void ({ it } = both))

const soon = () => performance.now() + 1_000

test('the platform fails after the code is spent: the same result again goes on with what it bought', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  it.upstream.answers.set(`/${opened.businessAccountId}/phone_numbers`, 'hang up')
  await expect(ask(it.app, completeSetup, dialog)).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  expect(await setupOf(opened.token)).toMatchObject({ state: 'active' })
  showNumbers(it.upstream, opened.businessAccountId, [{ phoneNumberId: opened.phoneNumberId }])
  expect(await ask(it.app, completeSetup, dialog)).toMatchObject({ number: { phone_number_id: opened.phoneNumberId } })
  expect(asked('/oauth/')).toBe(1)
})

test('however often a page asks again while the platform is away, its walk goes on by itself soon after, with all of its tries', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  it.upstream.answers.set(`/${opened.businessAccountId}/phone_numbers`, 'hang up')
  for (let n = 0; n < 4; n++) {
    await expect(ask(it.app, completeSetup, dialog)).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  }
  const [row] = await it.app.sql`
    select attempts, due_at < now() + interval '6 s' as is_soon from onboardings where setup_link_id = ${opened.linkId}
  `
  expect(row).toEqual({ attempts: 1, isSoon: true })
})

test('the process dies and the browser is gone: it goes on by itself', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  const numbers = `/${opened.businessAccountId}/phone_numbers`
  const { promise: after, resolve: endIt } = Promise.withResolvers<void>()
  it.upstream.answers.set(numbers, { after, status: 500, body: {} })
  const dying = ask(it.app, completeSetup, dialog).catch(() => {})
  await until(() => expect(asked(numbers)).toBe(1))
  showNumbers(it.upstream, opened.businessAccountId, [{ phoneNumberId: opened.phoneNumberId }])
  // As after a kill: the lease has lapsed, and nobody noted anything.
  await it.app.sql`
    update onboardings set held_until = held_until - interval '1 hour', due_at = due_at - interval '1 hour'
    where setup_link_id = ${opened.linkId}
  `
  const resuming = startResuming(it.app)
  await until(async () => expect(await setupOf(opened.token)).toMatchObject({ state: 'consumed' }))
  await resuming.stop()
  endIt()
  await dying
  expect(asked('/oauth/')).toBe(1)
})

/** A walk whose token is there, and whose browser is gone; due by itself now. */
async function abandoned(opened: Awaited<ReturnType<typeof openSetup>>) {
  const dialog = dialogOf(opened, await beginAt(it, opened))
  it.upstream.answers.set(`/${opened.businessAccountId}/phone_numbers`, 'hang up')
  await ask(it.app, completeSetup, dialog).catch(() => {})
  await it.app.sql`update onboardings set due_at = now() where setup_link_id = ${opened.linkId}`
}

test('it goes on by itself also where the platform takes seconds for each answer, and holds up no other', async () => {
  const slow = await openSetup(it)
  await abandoned(slow)
  showNumbers(it.upstream, slow.businessAccountId, [{ phoneNumberId: slow.phoneNumberId }])
  for (const path of ['subscribed_apps', 'phone_numbers'].map((name) => `/${slow.businessAccountId}/${name}`)) {
    const { body } = it.upstream.answers.get(path) as { body: unknown }
    it.upstream.answers.set(path, {
      body,
      get after() {
        return sleep(3_200)
      },
    })
  }
  it.upstream.asked.length = 0
  const resuming = startResuming(it.app)
  await until(() => expect(asked(slow.businessAccountId)).toBe(1))
  const quick = await openSetup(it)
  await abandoned(quick)
  showNumbers(it.upstream, quick.businessAccountId, [{ phoneNumberId: quick.phoneNumberId }])
  resuming.wake()
  await until(async () => expect(await setupOf(quick.token)).toMatchObject({ state: 'consumed' }))
  expect(await setupOf(slow.token)).toMatchObject({ state: 'active' })
  await until(async () => expect(await setupOf(slow.token)).toMatchObject({ state: 'consumed' }))
  await resuming.stop()
})

test('a stop waits for no answer about a walk that goes on by itself, and the walk stays', async () => {
  const opened = await openSetup(it)
  await abandoned(opened)
  const numbers = `/${opened.businessAccountId}/phone_numbers`
  it.upstream.answers.set(numbers, 'silence')
  it.upstream.asked.length = 0
  const resuming = startResuming(it.app)
  await until(() => expect(asked(numbers)).toBe(1))
  const stopsAt = performance.now()
  await resuming.stop()
  expect(performance.now() - stopsAt).toBeLessThan(3_000)
  const rows = await it.app.sql`
    select step, due_at is not null as is_due, held_until < now() as is_free from onboardings
    where setup_link_id = ${opened.linkId}
  `
  expect(rows).toEqual([{ step: 'exchanged', isDue: true, isFree: true }])
})

/** What a process has of a walk that it claimed, when its lease has lapsed. */
async function claimAndFreeze(walk: OnboardingRow, dialog: ReturnType<typeof dialogOf>) {
  const claimed = await claimOnboarding(it.app.sql, walk, dialog)
  if (!claimed) throw new Error('somebody has it')
  await it.app.sql`update onboardings set held_until = '-infinity' where setup_link_id = ${walk.setupLinkId}`
  // A claim is known by the millisecond in which it ends, and no other is made in the same one unless a test ends it.
  await sleep(2)
  return claimed
}

test('a process that was frozen over its lease changes nothing of what another one has brought to its end', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  const { businessAccountId, phoneNumberId, linkId } = opened
  const numbers = `/${businessAccountId}/phone_numbers`
  const rowOf = async () => {
    const [row] = await it.app.sql<OnboardingRow[]>`
      select ${it.app.sql(onboardingColumns)}, due_at from onboardings where setup_link_id = ${linkId}
    `
    if (!row) throw new Error('no onboarding')
    return row
  }
  it.upstream.answers.set(numbers, 'hang up')
  await ask(it.app, completeSetup, dialog).catch(() => {})
  const frozen = await claimAndFreeze(await rowOf(), dialog)
  showNumbers(it.upstream, businessAccountId, [{ phoneNumberId }])
  await ask(it.app, completeSetup, dialog)
  const after = await rowOf()
  expect(after).toMatchObject({ step: 'done', dueAt: null })
  // It finds the link used, or the platform away.
  await fail(it.app.sql, frozen, new Error('used'), soon())
  await putOff(it.app.sql, frozen, new Error('away'), soon())
  expect(await rowOf()).toEqual(after)
})

test('a process that was frozen over its lease does not speak for the one that is at it now', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  it.upstream.answers.set(`/${opened.businessAccountId}/phone_numbers`, 'hang up')
  await ask(it.app, completeSetup, dialog).catch(() => {})
  const walk = () => it.app.sql<OnboardingRow[]>`
    select ${it.app.sql(onboardingColumns)} from onboardings where setup_link_id = ${opened.linkId}
  `
  const [left] = await walk()
  if (!left) throw new Error('no walk')
  const frozen = await claimAndFreeze(left, dialog)
  await claimOnboarding(it.app.sql, frozen, dialog)
  const held = await walk()
  await fail(it.app.sql, frozen, new Error('used'), soon())
  await putOff(it.app.sql, frozen, new Error('away'), soon())
  expect(await walk()).toEqual(held)
})

test('a number that was connected by a try whose answer was lost is not said to have failed, though it was the last try', async () => {
  const setup = await openSetup(it)
  const state = await beginAt(it, setup)
  await ask(it.app, completeSetup, dialogOf(setup, state))
  const where = it.app.sql`organization_id = ${setup.organizationId} and id = ${onboardingIdOf(state)}`
  const [row] = await it.app.sql<OnboardingRow[]>`
    update onboardings set step = 'connected', due_at = now(), held_until = now() + interval '40 s' where ${where} returning ${it.app.sql(onboardingColumns)}
  `
  if (!row) throw new Error('no walk')
  await fail(it.app.sql, row, new Error('write CONNECTION_CLOSED'), soon())
  const [left] = await it.app.sql`select step, due_at is not null as is_due from onboardings where ${where}`
  expect(left).toEqual({ step: 'connected', isDue: true })
})

/** As a server that is starting up refuses, twice: what a statement that failed took of a sequence stays taken. */
async function refusingTwice(when: string, work: () => Promise<void>) {
  const { sql } = it.app
  await sql`create sequence refusals`
  await sql`
    create function refuse() returns trigger language plpgsql as $$ begin
      if nextval('refusals') <= 2 then
        raise exception 'the database system is starting up' using errcode = '57P03';
      end if;
      return new;
    end $$
  `
  await sql.unsafe(`
    create trigger refuse before update on onboardings for each row when (${when}) execute function refuse()
  `)
  try {
    await work()
  } finally {
    await sql`drop function refuse cascade`
    await sql`drop sequence refusals`
  }
}

test('what the code bought is kept also when the database is away just then', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  await refusingTwice('old.sealed_token is null and new.sealed_token is not null', async () => {
    expect(await ask(it.app, completeSetup, dialog)).toHaveProperty('number')
    expect(asked('/oauth/')).toBe(1)
  })
})

test('a walk that is put off is let go of also when the database is away just then', async () => {
  const opened = await openSetup(it)
  const { businessAccountId, phoneNumberId, linkId } = opened
  const dialog = dialogOf(opened, await beginAt(it, opened))
  it.upstream.answers.set(`/${businessAccountId}/phone_numbers`, 'hang up')
  await refusingTwice('new.last_error is not null', async () => {
    await expect(ask(it.app, completeSetup, dialog)).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  })
  const rows = await it.app.sql`
    select step, held_until < now() as is_free, due_at > now() as is_due from onboardings where setup_link_id = ${linkId}
  `
  expect(rows).toEqual([{ step: 'exchanged', isFree: true, isDue: true }])
  showNumbers(it.upstream, businessAccountId, [{ phoneNumberId }])
  expect(await ask(it.app, completeSetup, dialog)).toHaveProperty('number')
})

test('a walk that somebody goes on with is taken up by nobody else', async () => {
  const { linkId } = await openSetup(it)
  await it.app.sql`
    insert into onboardings (organization_id, id, setup_link_id, step, due_at)
    select organization_id, ${`walk of ${linkId}`}, id, 'exchanged', now() from setup_links where id = ${linkId}
  `
  const taken = async () => (await claimAbandoned(it.app.sql, 100)).filter(({ setupLinkId }) => setupLinkId === linkId)
  expect(await taken()).toHaveLength(1)
  expect(await taken()).toEqual([])
})

test('of walks of one organization that are taken up together each ends, or is put off, by itself', async () => {
  const { linkId } = await openSetup(it)
  await it.app.sql`
    insert into onboardings (organization_id, id, setup_link_id, step, due_at)
    select organization_id, n || ' of ' || id, id, 'exchanged', now() from setup_links, generate_series(1, 3) n where id = ${linkId}
  `
  const taken = (await claimAbandoned(it.app.sql, 100)).filter(({ setupLinkId }) => setupLinkId === linkId)
  const [ends, waits] = taken.toSorted((a, b) => a.id.localeCompare(b.id))
  if (!ends || !waits) throw new Error('no walks')
  await fail(it.app.sql, ends, new Error('used'), soon())
  await putOff(it.app.sql, waits, new Error('away'), soon())
  const left = await it.app.sql`
    select step, last_error, held_until > now() as is_held from onboardings where setup_link_id = ${linkId} order by id
  `
  expect(left).toEqual([
    { step: 'failed', lastError: 'used', isHeld: false },
    { step: 'exchanged', lastError: 'away', isHeld: false },
    { step: 'exchanged', lastError: null, isHeld: true },
  ])
})

test('a walk without a token that is put off twice, since its first answer was lost, still waits for its browser alone', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  const [row] = await it.app.sql<OnboardingRow[]>`
    update onboardings set step = 'exchanging', attempts = attempts + 1, held_until = now() + interval '40 s'
    where setup_link_id = ${opened.linkId} returning ${it.app.sql(onboardingColumns)}
  `
  if (!row) throw new Error('no walk')
  for (let n = 0; n < 2; n++) await putOff(it.app.sql, row, new Error('away'), soon())
  const rows = await it.app.sql`select step, due_at from onboardings where setup_link_id = ${opened.linkId}`
  expect(rows).toEqual([{ step: 'begun', dueAt: null }])
  expect(await ask(it.app, completeSetup, dialog)).toHaveProperty('number')
})

test('a walk whose number is connected is over also when the database is away just then', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  await refusingTwice("new.step = 'done'", async () => {
    expect(await ask(it.app, completeSetup, dialog)).toHaveProperty('number')
  })
  const rows = await it.app.sql`
    select step, held_until < now() as is_free from onboardings where setup_link_id = ${opened.linkId}
  `
  expect(rows).toEqual([{ step: 'done', isFree: true }])
})

test('a walk of a month ago that is taken up just when it is swept goes on', async () => {
  const { sql } = it.app
  const id = onboardingIdOf(await beginAt(it, await openSetup(it)))
  await sql`update onboardings set created_at = now() - interval '31 days' where id = ${id}`
  const sweep = await sql.begin(async (tx) => {
    await tx`update onboardings set step = 'exchanging', held_until = now() + interval '1 minute' where id = ${id}`
    const swept = sweepOnboardings(sql)
    await untilSomebodyWaits(sql)
    return { swept }
  })
  expect(await sweep.swept).toBe(0)
  // Its process died with the code.
  await sql`update onboardings set held_until = now() - interval '1 second' where id = ${id}`
  expect(await sweepOnboardings(sql)).toBe(1)
})
