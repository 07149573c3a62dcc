import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { randomOf } from '../faults/random.ts'
import { type Machines, startMachines } from './cluster.ts'
import { seed } from './seed.ts'
import { splitsOf } from './splits.ts'
import { breakUnderLoad } from './under-load.ts'

let machines: Machines
beforeAll(async () => {
  machines = await startMachines()
}, 180_000)
afterAll(() => machines?.remove(), 60_000)

/** Lines of the services' logs with these words. */
function logged(words: string) {
  const folder = join(machines.stack.dataDir, 'logs')
  return readdirSync(folder).flatMap((name) =>
    readFileSync(join(folder, name), 'utf8')
      .split('\n')
      .filter((line) => line.includes(words)),
  )
}

test('the network between three machines splits under load: nothing lost, nothing twice, no error past a few tries', async () => {
  await breakUnderLoad(machines, splitsOf(machines, randomOf(seed, 'splits')))
  // A server that was cut off does not pass for a stream that lost something.
  expect(logged('the stream lost events')).toEqual([])
}, 600_000)
