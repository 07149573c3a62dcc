import { expect, test } from 'vitest'
import { usualGoals } from './goals/goals.ts'
import { readOptions } from './options.ts'

const read = (line: string) => readOptions(line.split(' ').filter(Boolean))

test('measures all but the soak against bullmq, and what is asked for alone', () => {
  expect(read('')).toMatchObject({ goals: usualGoals, rounds: 5, seconds: 4, peers: ['bullmq'], capacity: undefined })
  expect(read('--only list,me --rounds 2')).toMatchObject({ goals: ['me', 'list'], rounds: 2 })
  expect(read('--peers all').peers).toHaveLength(3)
  expect(read('--only soak --minutes 0.5').minutes).toBe(0.5)
})

test.each([
  ['--only sned', '--only: there is no goal "sned".'],
  ['--only send,', '--only: there is no goal "".'],
  ['--only send,send', '--only names send more than once.'],
  ['--only send --only me', "Option '--only' is given more than once."],
  ['--peers bullmq,bullmq', '--peers names bullmq more than once.'],
  ['--peers all,bullmq', '--peers: "all" is none of bullmq, pg-boss, graphile-worker, all.'],
  ['--rounds 0', '--rounds must be a whole number from 1 to 3600.'],
  ['--seconds=-1', '--seconds must be a whole number from 1 to 3600.'],
  ['--rows 1.5', '--rows must be a whole number from 10000 to'],
  ['--only soak --minutes=-1', '--minutes must be a number from 0.1'],
  ['--minutes 5', '--minutes is about the goal soak, which is not measured in this run.'],
  ['--only me --peers all', '--peers is about the goal fan-out'],
  ['--only me --capacity x.md', '--capacity is about the goal capacity'],
  ['--round 5', "Unknown option '--round'."],
])('%s is refused before anything starts', (line, sentence) => {
  expect(() => read(line)).toThrow(sentence)
})
