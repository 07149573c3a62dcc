import { expect, test } from 'vitest'
import { Overtaken, untilWon } from './races.ts'

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

test('what undoes its transaction has lost too, and other failures are thrown', async () => {
  let attempts = 0
  const win = () => (++attempts < 3 ? Promise.reject(new Overtaken()) : Promise.resolve(attempts))
  expect(await untilWon(win)).toBe(3)
  await expect(untilWon(() => Promise.reject(new TypeError('no race')))).rejects.toThrow('no race')
})
