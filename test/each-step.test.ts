import postgres from 'postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { cutEachStep, insist } from './each-step.ts'
import { amount } from './fuzz/seed.ts'
import { startStepProxy, type StepProxy } from './step-proxy.ts'

let database: TestDatabase
let steps: StepProxy
let sql: postgres.Sql
beforeAll(async () => {
  database = await createTestDatabase('platform')
  steps = await startStepProxy(database.url)
  sql = postgres(steps.url, { max: 1, onnotice: () => {} })
  await sql`select 1`
})
afterAll(async () => {
  await sql.end({ timeout: 1 })
  steps.close()
  await database.drop()
})

/** Of so many statements in each run, the last number in all that follow; tells which runs lost one. */
function flowOf(...numbers: number[]) {
  const hurt: number[] = []
  let runs = 0
  const begin = () => {
    const run = runs++
    const statements = numbers[Math.min(run, numbers.length - 1)] ?? 0
    hurt.push(0)
    const act = async () => {
      for (let n = 0; n < statements; n++) {
        await insist((asked) => {
          if (asked > 0) hurt[run] = (hurt[run] ?? 0) + 1
          return sql`select 1`
        })
      }
    }
    return Promise.resolve({ act, seen: () => Promise.resolve('the same') })
  }
  return { begin, hurt }
}

/** The runs in which something was lost, behind the whole one. */
const cutsThatCut = (hurt: number[]) => hurt.slice(1).filter((losses) => losses > 0).length

test('each cut of a flow cuts', async () => {
  const { begin, hurt } = flowOf(4)
  await cutEachStep(steps, 'as many steps in each run', { begin })
  expect(cutsThatCut(hurt)).toBeGreaterThanOrEqual(amount(1, 3 * 4))
})

test('a cut that meets nothing, since a run has fewer steps than the whole one, is taken again where it has some', async () => {
  const { begin, hurt } = flowOf(40, 1)
  await cutEachStep(steps, 'fewer steps than at first', { begin })
  expect(cutsThatCut(hurt)).toBeGreaterThanOrEqual(amount(1, 3 * 40))
})

test.each([
  ['whose cuts are never met', [3, 0], 'not met in 8 runs'],
  ['without a step', [0], 'steps of the whole run'],
])('a flow %s fails', async (name, numbers, told) => {
  await expect(cutEachStep(steps, name, flowOf(...numbers))).rejects.toThrow(told)
})
