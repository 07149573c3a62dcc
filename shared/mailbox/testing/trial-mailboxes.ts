import { setTimeout as sleep } from 'node:timers/promises'
import { testService, type TestService } from '@app/test/service.ts'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, vi } from 'vitest'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { type Mailbox, startMailbox, type TurningOptions, type Want } from '../mailbox.ts'

export interface Item {
  laneId: string
  seq: string
  begun: boolean
}

/** Mailboxes over tables of their own, `trial_lanes`, `trial_items` and `trial_pace`, which each test of the file finds empty. */
export function trialMailboxes() {
  const trial = {} as { app: TestService }
  const mailboxes: Mailbox[] = []
  beforeAll(async () => {
    trial.app = await testService('messaging')
    const { sql } = trial.app
    await sql`create table trial_lanes (like send_lanes including all)`
    await sql`create table trial_items (seq bigint generated always as identity primary key, lane text, begun boolean default false)`
    await sql`create index on trial_items (lane, seq)`
    await sql`create table trial_pace (like pace including all)`
  })
  beforeEach(async () => {
    await trial.app.sql`delete from trial_items`
    await trial.app.sql`delete from trial_lanes`
    await trial.app.sql`delete from trial_pace`
  })
  // One that failed leaves none to the next try, which would share its work with it.
  afterEach(() => stopAll())
  afterAll(() => trial.app.close())

  async function add(lane: string, group: string, count: number) {
    await trial.app.sql.begin(async (tx) => {
      await tx`insert into trial_items (lane) select ${lane} from generate_series(1, ${count}::int)`
      await tx`
        insert into trial_lanes as l (id, grp, due_at, arrivals) values (${lane}, ${group}, now(), 1)
        on conflict (id) do update set due_at = coalesce(l.due_at, now()), arrivals = l.arrivals + 1
      `
    })
    for (const mailbox of mailboxes) mailbox.wake()
  }

  function start(
    work: (item: Item, mayBegin: () => boolean) => Promise<void>,
    options: Partial<TurningOptions<Item, true>> = {},
    by = trial.app,
  ) {
    const mailbox = startMailbox<Item, true>(by, {
      lanes: 'trial_lanes',
      slots: 50,
      capacity: () => 1,
      refill: true,
      next: take,
      work: async (item, _lane, mayBegin) => {
        await work(item, mayBegin)
        return true
      },
      settle: settleTrial,
      ...options,
    })
    mailboxes.push(mailbox)
    return mailbox
  }

  async function untilEmpty(timeout = 15_000) {
    await vi.waitFor(async () => expect(await trial.app.sql`select 1 from trial_items`).toHaveLength(0), {
      timeout,
      interval: 25,
    })
  }

  /**
   * For the rest of the test the waits between polls are that many times as long, 10 s for the shortest: what comes sooner was not
   * found by one, however busy the machine is.
   */
  function pollLate(times = 40) {
    const random = vi.spyOn(Math, 'random').mockReturnValue(times - 0.5)
    onTestFinished(() => random.mockRestore())
  }

  async function stopAll() {
    await Promise.all(mailboxes.splice(0).map((mailbox) => mailbox.stop()))
  }

  return Object.assign(trial, { mailboxes, add, start, untilEmpty, pollLate, stopAll })
}

/** Work that takes some time, and how much of it ran at once at most. */
export function countMost(ms: number) {
  const counted = { most: 0, work }
  let inWork = 0
  async function work() {
    counted.most = Math.max(counted.most, ++inWork)
    await sleep(ms)
    inWork--
  }
  return counted
}

/** Takes the first items of each lane that are not in work here. */
export async function take(tx: TransactionSql, wants: Want[]): Promise<Item[]> {
  const most = wants.map(({ lane, free }) => ({ lane: lane.id, free }))
  const taken = await tx<Item[]>`
    with t as materialized (
      select i.seq, i.begun from json_to_recordset(${JSON.stringify(most)}::text::json) as w(lane text, free int)
      cross join lateral (
        select seq, begun from trial_items where lane = w.lane and not begun order by seq limit w.free for update
      ) i
    )
    update trial_items i set begun = true from t where i.seq = t.seq returning i.lane as lane_id, i.seq, t.begun
  `
  return taken.toSorted((a, b) => Number(a.seq) - Number(b.seq))
}

/** What came too late to begin goes back. */
export const settleTrial: TurningOptions<Item, true>['settle'] = async (tx, done) => {
  const [worked, late] = [done.filter(({ outcome }) => outcome), done.filter(({ outcome }) => !outcome)]
  await tx`delete from trial_items where seq = any(${worked.map(({ item }) => item.seq)}::bigint[])`
  await tx`update trial_items set begun = false where seq = any(${late.map(({ item }) => item.seq)}::bigint[])`
  return []
}
