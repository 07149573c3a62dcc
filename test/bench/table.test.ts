import { expect, test } from 'vitest'
import { rowsOf, tableOf } from './table.ts'

test('shows the median of the rounds with gate and aim, in the order of the goals', () => {
  const rows = rowsOf([
    { name: 'upstreamP50', rounds: [20, 4, 16], from: '' },
    { name: 'me', rounds: [0.95, 0.5, 0.91], from: '70.1 k/s : 77.2 k/s' },
  ])
  expect(rows).toMatchObject([
    { value: 0.91, gate: 0.7, aim: 0.9, verdict: 'aim' },
    { value: 16, gate: 15, aim: 5, verdict: 'missed' },
  ])
  const [head, me, upstream] = tableOf(rows).split('\n')
  expect(head).toMatch(/measured +gate +aim/)
  expect(me).toMatch(/GET \/me.* 0\.91 × +0\.70 × +0\.90 × +aim +70\.1 k\/s : 77\.2 k\/s$/)
  expect(upstream).toMatch(/16\.0 ms +15\.0 ms +5\.00 ms +MISSED$/)
})

test('judges by the side that is the good one', () => {
  const verdictOf = (name: 'send64' | 'send1', value: number) =>
    rowsOf([{ name, rounds: [value], from: '' }])[0]?.verdict
  expect(verdictOf('send64', 0.79)).toBe('missed')
  expect(verdictOf('send64', 0.8)).toBe('gate')
  expect(verdictOf('send64', 1.2)).toBe('aim')
  expect(verdictOf('send1', 4.1)).toBe('missed')
  expect(verdictOf('send1', 4)).toBe('gate')
  expect(verdictOf('send1', 2.5)).toBe('aim')
  expect(verdictOf('send1', NaN)).toBe('missed')
})
