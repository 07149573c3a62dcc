import { expect, test } from 'vitest'
import { untilWon } from './races.ts'

test('whoever loses a race tries again, and is answered what the winning attempt found', async () => {
  let attempts = 0
  expect(await untilWon(() => Promise.resolve(++attempts < 3 ? undefined : attempts))).toBe(3)
})

test('whoever goes on losing is refused for the moment', async () => {
  let attempts = 0
  const lose = () => {
    attempts++
    return Promise.resolve(undefined)
  }
  await expect(untilWon(lose)).rejects.toMatchObject({ failure: 'service_unavailable' })
  expect(attempts).toBe(8)
})
