import { expect, test } from 'vitest'
import { commands } from '../deploy/administration/commands.ts'
import { kinds } from '../deploy/administration/kinds.ts'
import { readPage } from './docs/pages.ts'

const sections = readPage('docs/running.md').text.split(/^## /m)
/** What stands in backticks in a section of the page. */
const codesOf = (title: string) => {
  const section = sections.find((part) => part.startsWith(`${title}\n`)) ?? ''
  return new Set([...section.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code.replace(/ ID$/, '')))
}
const codes = codesOf('Administration')

test('the page names every command', () => {
  expect(Object.keys(commands).filter((words) => !codes.has(words))).toEqual([])
})

test('the page names every option of an organization', () => {
  const options = Object.keys(commands['organization update']?.options ?? {}).filter((name) => name !== 'name')
  expect(options.filter((name) => !codes.has(`--${name}`))).toEqual([])
})

test('the page names every kind of id that can be explained', () => {
  const named = codesOf('Explanations')
  expect(kinds.map(({ ids }) => ids).filter((ids) => !named.has(ids))).toEqual([])
})
