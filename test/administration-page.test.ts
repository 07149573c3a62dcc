import { expect, test } from 'vitest'
import { commands } from '../deploy/administration/commands.ts'
import { readPage } from './docs/pages.ts'

const section =
  readPage('docs/running.md')
    .text.split(/^## /m)
    .find((part) => part.startsWith('Administration\n')) ?? ''
const codes = new Set([...section.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code.replace(/ ID$/, '')))

test('the page names every command', () => {
  expect(Object.keys(commands).filter((words) => !codes.has(words))).toEqual([])
})

test('the page names every option of an organization', () => {
  const options = Object.keys(commands['organization update']?.options ?? {}).filter((name) => name !== 'name')
  expect(options.filter((name) => !codes.has(`--${name}`))).toEqual([])
})
