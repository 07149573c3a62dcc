import { setTimeout as sleep } from 'node:timers/promises'
import { freezeFor } from '@app/test/freeze.ts'
import type { TestService } from '@app/test/service.ts'
import { until } from '@app/test/until.ts'
import { describe, expect, test, vi } from 'vitest'
import type { TransactionSql } from '../database/database.ts'
import type { TurningOptions, Want } from './mailbox.ts'
import { type Item, settleTrial, take, trialMailboxes } from './testing/trial-mailboxes.ts'

/** A process that loses its database whenever it `isAway`. */
function withOutages(service: TestService, why: object = { code: 'ECONNREFUSED' }) {
  const holder = { isAway: false, app: service }
  const reach = () => {
    if (holder.isAway) throw Object.assign(new Error('refused'), why)
    return service.sql
  }
  const sql = new Proxy(service.sql, {
    apply: (_, self, args) => Reflect.apply(reach(), self, args),
    get: (_, name) => Reflect.get(name === 'begin' ? reach() : service.sql, name),
  })
  holder.app = { ...service, sql }
  return holder
}

/** Its transactions are committed, and no commit is answered. */
function withoutAnswers(service: TestService): TestService {
  const begin = async (work: (tx: TransactionSql) => Promise<unknown>) => {
    await service.sql.begin(work)
    throw Object.assign(new Error('the connection was lost'), { code: 'CONNECTION_CLOSED' })
  }
  const get = (_: object, name: string | symbol) =>
    name === 'begin' ? begin : (Reflect.get(service.sql, name) as unknown)
  return { ...service, sql: new Proxy<TestService['sql']>(service.sql, { get }) }
}

const beginAnew = (tx: TransactionSql, wants: Want[]) => tx`
  update trial_items set begun = false where lane = any(${wants.map(({ lane }) => lane.id)}::text[])
`

/** Begun items of a dead holder are taken again here; what to do with them is each mailbox's own decision. */
async function takeAgain(tx: TransactionSql, wants: Want[]) {
  await beginAnew(tx, wants)
  return take(tx, wants)
}

/** Who takes a lane over finds what the other one has begun. */
async function takeOver(tx: TransactionSql, wants: Want[]) {
  await beginAnew(
    tx,
    wants.filter(({ fresh }) => fresh),
  )
  return take(tx, wants)
}

// Side by side, since they wait: each of these has tables of its own, which its tests use in turn.
const inTurn = { concurrent: false }

describe.concurrent('a database that is away', () => {
  const trial = trialMailboxes()
  const { add, start, untilEmpty, stopAll } = trial

  test.each([
    ['was away', { code: 'ECONNREFUSED' }],
    ['refused our logins', { code: '28P01', severity: 'FATAL' }],
  ])('what was done while the database %s is recorded before its lane is taken by anybody', inTurn, async (_, why) => {
    const seen: string[] = []
    const [here, there] = [withOutages(trial.app, why), withOutages(trial.app, why)]
    const work = async ({ seq }: Item) => {
      if (seen.push(seq) === 1) here.isAway = there.isAway = true
    }
    start(work, { leaseMs: 900, next: takeAgain }, here.app)
    await add('lane', 'group', 1)
    await vi.waitFor(() => expect(seen).toHaveLength(1), { timeout: 5_000, interval: 1 })
    start(work, { leaseMs: 900, next: takeAgain }, there.app)
    await sleep(1_200)
    there.isAway = false
    await sleep(1_200)
    here.isAway = false
    await untilEmpty()
    await stopAll()
    expect(seen).toHaveLength(1)
  })

  test(
    'what was done is not forgotten when the database goes away while outcomes are recorded one by one',
    inTurn,
    async () => {
      const { promise: goOn, resolve: end } = Promise.withResolvers<void>()
      let [begun, tries] = [0, 0]
      const away = () => Object.assign(new Error('the connection was lost'), { code: 'CONNECTION_CLOSED' })
      // At the outcomes of a lane, and at a single one of them.
      const failures = [away(), new Error('odd'), away()]
      const settle: TurningOptions<Item, true>['settle'] = async (tx, done) => {
        if (done.length > 1) throw new Error(`one of these cannot be recorded: ${++tries}`)
        const failure = failures.shift()
        if (failure) throw failure
        await tx`delete from trial_items where seq = any(${done.map(({ item }) => item.seq)}::bigint[])`
        return []
      }
      start(
        () => {
          begun++
          return goOn
        },
        { settle },
      )
      await Promise.all(['one', 'other'].map((lane) => add(lane, 'group', 1)))
      await vi.waitFor(() => expect(begun).toBe(2), { timeout: 5_000 })
      end()
      await untilEmpty(8_000)
      await stopAll()
      expect(tries).toBeGreaterThan(0)
      expect(begun).toBe(2)
    },
  )

  test(
    'a lane that was found empty is given back by a holder that stops, also when the database is away just then',
    inTurn,
    async () => {
      const holder = withOutages(trial.app)
      const next = () => {
        holder.isAway = true
        return Promise.resolve([])
      }
      start(() => Promise.resolve(), { next }, holder.app)
      await add('empty', 'group', 0)
      await vi.waitFor(() => expect(holder.isAway).toBe(true), { timeout: 5_000 })
      const stopping = stopAll()
      await sleep(200)
      expect(await trial.app.sql`select held_until > now() as is_held from trial_lanes`).toEqual([{ isHeld: true }])
      holder.isAway = false
      await stopping
      expect(await trial.app.sql`select held_until > now() as is_held from trial_lanes`).toEqual([{ isHeld: false }])
    },
  )
})

describe.concurrent('a lease that ends, or is held on', () => {
  const trial = trialMailboxes()
  const { add, start, untilEmpty, stopAll } = trial

  test('the lane of a holder that died is taken over when its lease is over', inTurn, async () => {
    let died = false
    const seen: string[] = []
    const work = async ({ seq }: Item) => {
      if (!died) {
        died = true
        throw new Error('dies')
      }
      seen.push(seq)
    }
    // A third of it is slow, and then others keep what they hold for a while: a busy machine must not seem so.
    start(work, { leaseMs: 1_500, next: takeAgain })
    await add('orphan', 'group', 2)
    await untilEmpty()
    await stopAll()
    expect(seen).toHaveLength(2)
  })

  test('a lane that works longer than its lease keeps it', inTurn, async () => {
    const begun: string[] = []
    const work = async ({ seq }: Item) => {
      begun.push(seq)
      await sleep(begun.length === 1 ? 2_200 : 100)
    }
    for (let n = 0; n < 2; n++) start(work, { leaseMs: 900, next: takeOver })
    await add('long', 'group', 5)
    await untilEmpty()
    await stopAll()
    expect(begun).toHaveLength(5)
  })

  test(
    'a lane that was lost and taken again keeps its lease, though work ends that was begun before',
    inTurn,
    async () => {
      const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      let [begun, claims] = [0, 0]
      const next = (tx: TransactionSql, wants: Want[]) => {
        claims += wants.filter(({ fresh }) => fresh).length
        return take(tx, wants)
      }
      start(() => (++begun === 1 ? first.promise : second.promise), { leaseMs: 600, next })
      await add('again', 'group', 2)
      await vi.waitFor(() => expect(begun).toBe(1), { timeout: 5_000 })
      await trial.app.sql`update trial_lanes set held_until = '-infinity'`
      await vi.waitFor(() => expect(begun).toBe(2), { timeout: 5_000 })
      first.resolve()
      await vi.waitFor(async () => expect(await trial.app.sql`select from trial_items`).toHaveLength(1))
      await sleep(1_000)
      second.resolve()
      await untilEmpty()
      await stopAll()
      expect(claims).toBe(2)
    },
  )

  test('what was picked too late in the lease of its lane is not worked on, and goes back', inTurn, async () => {
    const seen: string[] = []
    let unbegun = 0
    let picks = 0
    start(async ({ seq }) => void seen.push(seq), {
      leaseMs: 1_500,
      next: async (tx, wants) => {
        if (++picks === 1) await sleep(1_000)
        return take(tx, wants)
      },
      settle: async (tx, done, lockLanes) => {
        unbegun += done.filter(({ outcome }) => !outcome).length
        return settleTrial(tx, done, lockLanes)
      },
    })
    await add('late', 'group', 1)
    await untilEmpty()
    await stopAll()
    expect(unbegun).toBe(1)
    expect(seen).toHaveLength(1)
  })
})

describe.concurrent('outcomes that cannot be recorded', () => {
  const trial = trialMailboxes()
  const { add, start, untilEmpty, stopAll } = trial

  test('what was committed without an answer goes on as if it had been answered', inTurn, async () => {
    const seen: string[] = []
    const work = async ({ seq }: Item) => {
      seen.push(seq)
      if (seen.length === 1) await sleep(2_400)
    }
    start(work, { leaseMs: 2_000, next: takeOver }, withoutAnswers(trial.app))
    await add('unanswered', 'group', 5)
    await untilEmpty()
    await stopAll()
    expect(seen).toHaveLength(5)
  })

  test(
    'an outcome that cannot be recorded holds up no other, and its lane is taken again when its lease is over',
    inTurn,
    async () => {
      const tries: string[] = []
      start(async ({ laneId }) => void tries.push(laneId), {
        leaseMs: 1_500,
        next: takeOver,
        settle: async (tx, done, lockLanes) => {
          const isOdd = done.some(({ item }) => item.laneId === 'odd')
          if (isOdd && tries.filter((lane) => lane === 'odd').length === 1) throw new Error('odd')
          return settleTrial(tx, done, lockLanes)
        },
      })
      await Promise.all([add('odd', 'group', 1), ...Array.from({ length: 5 }, (_, n) => add(`plain ${n}`, 'group', 1))])
      await untilEmpty()
      await stopAll()
      expect(tries.toSorted()).toEqual(['odd', 'odd', ...Array.from({ length: 5 }, (_, n) => `plain ${n}`)])
    },
  )

  test(
    'an outcome of which somebody has locked a row holds up no other for long, and is recorded when that is free',
    inTurn,
    async () => {
      const free = Promise.withResolvers<void>()
      const locked = Promise.withResolvers<void>()
      const holding = trial.app.sql.begin(async (tx) => {
        // As long as it takes.
        await tx`set local idle_in_transaction_session_timeout = 0`
        await tx`select pg_advisory_xact_lock(1)`
        locked.resolve()
        await free.promise
      })
      await locked.promise
      const tries: string[] = []
      start(async ({ laneId }) => void tries.push(laneId), {
        settle: async (tx, done, lockLanes) => {
          if (done.some(({ item }) => item.laneId === 'odd')) await tx`select pg_advisory_xact_lock(1)`
          return settleTrial(tx, done, lockLanes)
        },
      })
      await Promise.all([add('odd', 'group', 2), ...Array.from({ length: 5 }, (_, n) => add(`plain ${n}`, 'group', 2))])
      try {
        await until(async () =>
          expect(await trial.app.sql`select distinct lane from trial_items`).toEqual([{ lane: 'odd' }]),
        )
      } finally {
        free.resolve()
        await holding
      }
      await untilEmpty()
      await stopAll()
      expect(tries).toHaveLength(12)
    },
  )
})

describe('what must not wait for anything else', () => {
  const trial = trialMailboxes()
  const { add, start, untilEmpty, stopAll } = trial

  test('a holder that dies is waited for for less than ten seconds', async () => {
    const { promise: goOn, resolve: end } = Promise.withResolvers<void>()
    start(() => goOn)
    await add('held', 'group', 1)
    await vi.waitFor(async () =>
      expect(
        await trial.app
          .sql`select held_until < now() + interval '10 seconds' as within from trial_lanes where held_until > now()`,
      ).toEqual([{ within: true }]),
    )
    end()
    await stopAll()
  })

  test('failures that a directive tells of stand in the row of a lane that stays held, and its lease stays as it is', async () => {
    const hanging = Promise.withResolvers<void>()
    let begun = 0
    let failures = 0
    const settle: TurningOptions<Item, true>['settle'] = async (tx, done) => {
      await tx`delete from trial_items where seq = any(${done.map(({ item }) => item.seq)}::bigint[])`
      return done.map(({ item }) => ({ laneId: item.laneId, failures: ++failures }))
    }
    start(() => (++begun === 1 ? hanging.promise : Promise.resolve()), { capacity: () => 2, settle })
    await add('failing', 'group', 3)
    const read = () => trial.app.sql`select failures, held_until > now() as is_held from trial_lanes`
    await vi.waitFor(async () => expect(await read()).toEqual([{ failures: 2, isHeld: true }]), { timeout: 5_000 })
    hanging.resolve()
    await untilEmpty()
    await vi.waitFor(async () => expect(await read()).toEqual([{ failures: 3, isHeld: false }]), { timeout: 5_000 })
    await stopAll()
  })

  test('a lane that goes on says how long it is held, so that its holder does not take his own work for that of another', async () => {
    const hanging = Promise.withResolvers<void>()
    const held: number[] = []
    let claimedAt = 0
    const next = async (tx: TransactionSql, wants: Want[]) => {
      for (const { fresh, heldMs } of wants) {
        if (fresh) claimedAt = performance.now()
        held.push(fresh ? heldMs : heldMs - (performance.now() - claimedAt))
      }
      return take(tx, wants)
    }
    let begun = 0
    start(() => (++begun === 1 ? hanging.promise : sleep(100)), { capacity: () => 2, next })
    await add('lane', 'group', 5)
    await vi.waitFor(() => expect(begun).toBe(5), { timeout: 5_000 })
    hanging.resolve()
    await untilEmpty()
    await stopAll()
    const [first, ...later] = held
    expect([first, later.length > 0]).toEqual([0, true])
    for (const sinceClaimMs of later) expect(sinceClaimMs).toBeGreaterThanOrEqual(0)
    expect(Math.max(...later)).toBeLessThan(1_000)
  })

  test('work that has to wait before it begins is told that a freeze has made it too late, and that the lane is held again', async () => {
    const told: boolean[] = []
    const work = async (_item: Item, mayBegin: () => boolean) => {
      told.push(mayBegin())
      freezeFor(800)
      told.push(mayBegin())
      await vi.waitFor(() => expect(mayBegin()).toBe(true), { timeout: 5_000 })
    }
    start(work, { leaseMs: 1_500 })
    await add('frozen', 'group', 1)
    await untilEmpty()
    expect(told).toEqual([true, false])
  })
})
