import { inspect } from 'node:util'
import { Problem } from '@app/shared/api/problem.ts'
import { oneByWeight, randomOf, type Weighted } from '@app/test/faults/random.ts'
import { amount, seed } from '@app/test/fuzz/seed.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testDirectory, type TestDirectory } from './testing/app.ts'
import { wrongInEvents } from './testing/laws-of-events.ts'
import { wrongInRows } from './testing/laws-of-rows.ts'
import { wrongStops } from './testing/laws-of-stops.ts'
import { type Change, changes, changesOfNames, deleteContact } from './testing/random-changes.ts'
import { news, newsOfNames, removingAddressBook } from './testing/random-news.ts'
import { read } from './testing/random-reads.ts'
import { newWorld, type World } from './testing/random-world.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
  // Who waits in a circle is told by Postgres after a second; a busy machine is not to be taken for that.
  Object.assign(directory.sql.options.connection, { lock_timeout: '20s', statement_timeout: '20s' })
})
afterAll(() => directory.drop())

const rounds = amount(1, 12)

interface Kind {
  all: Weighted<Change>[]
  people: number
  /** How many changes are made at once. */
  atOnce: number
  /** How many are made in a round. */
  count: number
  isAnyDeleted: boolean
}

const deletions: Weighted<Change>[] = [
  [2, deleteContact],
  [1, removingAddressBook],
]

const kinds: Record<string, Kind> = {
  'changes of all kinds at once': {
    all: [...changes, ...news, ...deletions],
    people: 12,
    atOnce: 12,
    count: amount(250, 1_000),
    isAnyDeleted: true,
  },
  'changes at once, of which none deletes a contact': {
    all: [...changes, ...news],
    people: 12,
    atOnce: 12,
    count: amount(150, 1_000),
    isAnyDeleted: false,
  },
  'changes of who has which names at once': {
    all: [...changesOfNames, ...newsOfNames],
    people: 4,
    atOnce: 12,
    count: amount(100, 500),
    isAnyDeleted: true,
  },
  'changes and reads, one after the other': {
    all: [...changes, ...news, ...deletions, [8, read]],
    people: 12,
    atOnce: 1,
    count: amount(120, 600),
    isAnyDeleted: true,
  },
}

test.each(Object.entries(kinds))(
  '%s, on three instances: names, merges, counts, stops and events agree in the end',
  { timeout: 3_600_000 },
  async (name, kind) => {
    for (let round = 0; round < rounds; round++) {
      const world = await newWorld(directory, kind.people)
      const failures = await makeChanges(world, kind, `${name}, ${round}`)
      const wrong = [...failures, ...(await wrongInRows(world)), ...(await wrongInEvents(world))]
      // In the end, since it is asked by changes.
      wrong.push(...(await wrongStops(world, kind.isAnyDeleted)))
      expect(wrong.slice(0, 10), `round ${round} of seed ${seed}`).toEqual([])
    }
  },
)

/** Each change has chances of its own, so that they are the same again whatever happens meanwhile; answers what should not have failed. */
async function makeChanges(world: World, { all, atOnce, count }: Kind, name: string): Promise<string[]> {
  const failures: string[] = []
  let next = 0
  async function makeOneAfterTheOther() {
    while (next < count) {
      const chances = `${name}, ${next++}`
      const change = oneByWeight(randomOf(seed, chances), all)
      await insist(() => change(world, randomOf(seed, `what, ${chances}`))).catch((err: unknown) => {
        if (!isExpected(err)) failures.push(`${change.name}: ${inspect(err)}`)
      })
    }
  }
  await Promise.all(Array.from({ length: atOnce }, makeOneAfterTheOther))
  return failures
}

/** Who goes on losing races is refused for the moment, and asks again. */
async function insist(ask: () => Promise<unknown>) {
  for (let asked = 1; asked < 5; asked++) {
    const isDone = await ask().then(() => true, isRefusedForTheMoment)
    if (isDone) return
  }
  await ask()
}

function isRefusedForTheMoment(err: unknown): false {
  if (err instanceof Problem && err.failure === 'service_unavailable') return false
  throw err
}

/** What is asked for may be gone, and a name may be somebody else's. */
const isExpected = (err: unknown) =>
  err instanceof Problem && ['resource_not_found', 'contact_identity_conflict'].includes(err.failure)
