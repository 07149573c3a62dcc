import { afterAll, beforeAll, expect, test } from 'vitest'
import { newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

test('a new recipient does not wait behind all of another organization that came before it', async () => {
  const [many, other] = [await newNumber(directory.app), await newNumber(directory.app)]
  let opened = 0
  const flood = Array.from({ length: 700 }, async (_, n) => {
    await many.open({ phone_number: `+1555012${String(1_000 + n)}` })
    opened++
  })
  await other.open({ phone_number: '+15550199999' })
  expect(opened).toBeLessThan(300)
  await Promise.all(flood)
})
