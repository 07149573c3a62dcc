import { expect, onTestFinished, test, vi } from 'vitest'
import { sparingly } from './sparingly.ts'

test('so many lines a second are written, and the next one says how many were not', () => {
  const now = vi.spyOn(performance, 'now').mockReturnValue(5_000)
  onTestFinished(() => now.mockRestore())
  const lines: object[] = []
  const tell = sparingly(2, (line, message) => lines.push({ ...line, message }))
  for (let n = 0; n < 5; n++) tell({ n }, 'http')
  expect(lines).toEqual([0, 1].map((n) => ({ n, message: 'http' })))
  now.mockReturnValue(6_000)
  for (let n = 5; n < 7; n++) tell({ n }, 'http')
  expect(lines.slice(2)).toEqual([
    { n: 5, untold: 3, message: 'http' },
    { n: 6, message: 'http' },
  ])
})
