import { expect, test } from 'vitest'
import { parseOnce, refuseWords } from './command-line.ts'

const options = {
  name: { type: 'string' },
  add: { type: 'string', multiple: true },
  quiet: { type: 'boolean' },
} as const
const parse = (line: string) => parseOnce({ args: line.split(' '), options }, ' Usage: x').values

test('an option is taken once, unless it may come again or says the same again', () => {
  expect(parse('--name a --quiet --quiet --add b --add=c')).toEqual({ name: 'a', quiet: true, add: ['b', 'c'] })
  expect(() => parse('--name a --name=a')).toThrow("Option '--name' is given more than once. Usage: x")
})

test.each([
  ['--nmae a', "Unknown option '--nmae'. Usage: x"],
  ['--name', "Option '--name <value>' argument missing. Usage: x"],
  ['--name -5', "argument starting with a dash use '--name=-XYZ'. Usage: x"],
  ['--quiet=no', "Option '--quiet' does not take an argument. Usage: x"],
  ['a', "Unexpected argument 'a'"],
])('%s is refused with a sentence', (line, sentence) => {
  expect(() => parse(line)).toThrow(sentence)
})

test('who takes no words refuses any', () => {
  expect(() => refuseWords([])).not.toThrow()
  expect(() => refuseWords(['--dry-run'])).toThrow('"--dry-run" means nothing here')
})
