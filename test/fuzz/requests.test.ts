import fc from 'fast-check'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { operations } from './document.ts'
import { checkLaws, send } from './laws.ts'
import { type Request, shown } from './request.ts'
import { requestOf } from './requests.ts'
import { amount, seed } from './seed.ts'
import { makeWorld, type World } from './world.ts'

const stack = inject('stack')
const count = amount(500, 10_000)
/** Under way at a time. */
const parallel = 8

let world: World
beforeAll(async () => {
  world = await makeWorld()
}, 120_000)
afterAll(() => world?.close())

const inJson = operations.filter(({ takesFile }) => !takesFile)
const bases = (stack.services['gateway'] ?? []).map(({ public_url }) => `${public_url ?? ''}/v1`)

/** Throws when the answer breaks a law. */
async function prove(request: Request, n = 0): Promise<number> {
  const answer = await send(bases[n % bases.length] ?? stack.base_url, world.tenant.key, request)
  try {
    checkLaws(request, answer)
  } catch (err) {
    throw new Error(`${shown(request)}\n  ${err instanceof Error ? err.message : String(err)}`, { cause: err })
  }
  return answer.status
}

test(`${count} requests made from our OpenAPI, valid and mutated: no 5xx, every answer fits it and names its fault`, { timeout: 1_800_000 }, async () => {
  const requests = fc.sample(requestOf(world, inJson), { seed, numRuns: count })
  const failures: { n: number; message: string }[] = []
  const counts = new Map<string, number>()
  let next = 0
  await Promise.all(
    Array.from({ length: parallel }, async () => {
      for (let n = next++; n < requests.length; n = next++) {
        const request = requests[n] as Request
        try {
          const status = await prove(request, n)
          const outcome = `${request.operation.name} ${status}`
          counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
        } catch (err) {
          failures.push({ n, message: err instanceof Error ? err.message : String(err) })
        }
      }
    }),
  )
  report(counts)
  const told = failures.slice(0, 20).map(({ n, message }) => `#${n} ${message}`)
  expect(told.join('\n'), `FUZZ_SEED=${seed}: ${failures.length} of ${count}`).toBe('')
}) // prettier-ignore

function report(counts: Map<string, number>) {
  const byStatus: Record<string, number> = {}
  for (const [outcome, times] of counts) {
    const status = outcome.split(' ').at(-1) ?? ''
    byStatus[status] = (byStatus[status] ?? 0) + times
  }
  console.log(`answers by status: ${JSON.stringify(byStatus)}`)
  const fruitless = inJson.filter(
    ({ name }) =>
      ![...counts.keys()].some((outcome) => outcome.startsWith(`${name} 2`) || outcome.startsWith(`${name} 3`)),
  )
  console.log(`operations without a success: ${fruitless.map(({ name }) => name).join(', ') || 'none'}`)
}
