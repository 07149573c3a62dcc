import fc from 'fast-check'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { operations } from './document.ts'
import { failuresOf } from './failures-of.ts'
import { checkLaws, send } from './laws.ts'
import { requestOf } from './requests.ts'
import { amount, seed } from './seed.ts'
import { makeWorld, type World } from './world.ts'

const stack = inject('stack')
const count = amount(500, 10_000)

let world: World
beforeAll(async () => {
  world = await makeWorld()
}, 120_000)
afterAll(() => world?.close())

const inJson = operations.filter(({ takesFile }) => !takesFile)
const bases = (stack.services['gateway'] ?? []).map(({ public_url }) => `${public_url ?? ''}/v1`)

test(`${count} requests made from our OpenAPI, valid and mutated: no 5xx, every answer fits it and names its fault`, { timeout: 1_800_000 }, async () => {
  const requests = fc.sample(requestOf(world, inJson), { seed, numRuns: count })
  const counts = new Map<string, number>()
  const failures = await failuresOf(requests, (request) => request, async (request, n) => {
    const answer = await send(bases[n % bases.length] ?? stack.base_url, world.tenant.key, request)
    checkLaws(request, answer)
    const outcome = `${request.operation.name} ${answer.status}`
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
  })
  report(counts)
  expect(failures.slice(0, 20).join('\n'), `FUZZ_SEED=${seed}: ${failures.length} of ${count}`).toBe('')
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
