import { expect, test } from 'vitest'
import { readOptions } from './options.ts'

const read = (line: string, env: NodeJS.ProcessEnv = {}) => readOptions(line.split(' ').filter(Boolean), env)

test('runs both parts, ten minutes of faults with a seed of its own, unless told otherwise', () => {
  const usual = { parts: ['nemesis', 'stories'], seed: expect.stringMatching(/^\d{1,6}$/), seconds: '600' }
  expect(read('')).toEqual(usual)
  expect(read('', { FAULTS_SEED: '3', FAULTS_SECONDS: '20' })).toMatchObject({ seed: '3', seconds: '20' })
  const told = read('--only nemesis --seed 7 --seconds 30', { FAULTS_SEED: '3' })
  expect(told).toEqual({ parts: ['nemesis'], seed: '7', seconds: '30' })
})

test.each([
  ['--only nemeses', '--only: "nemeses" is neither nemesis nor stories.'],
  ['--only nemesis --only stories', "Option '--only' is given more than once."],
  ['--seconds 0', '--seconds must be a whole number from 1 to 86400, and is "0".'],
  ['--seconds=-5', '--seconds must be a whole number from 1'],
  ['--seconds ten', '--seconds must be a whole number from 1'],
  ['--seed x', '--seed must be a whole number from 0'],
  ['--only stories --seed 7', '--seed is about the nemesis, which is not in this run.'],
  ['--sceonds 5', "Unknown option '--sceonds'."],
])('%s is refused before anything starts', (line, sentence) => {
  expect(() => read(line)).toThrow(sentence)
})
