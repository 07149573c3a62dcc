import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { lawNames } from './faults/history/check.ts'
import { faults } from './faults/nemesis/faults.ts'

const root = join(import.meta.dirname, '..')
const page = readFileSync(join(root, 'docs/testing.md'), 'utf8')

const rowsBelow = (heading: string) => {
  const [, section = ''] = page.split(heading)
  const lines = section.trimStart().split('\n\n')[0]?.split('\n').slice(2) ?? []
  return lines.map((line) => line.split('|').map((cell) => cell.trim()))
}

test('the page names everything that the nemesis does, and nothing else', () => {
  const named = rowsBelow('by plan of the seed:').flatMap(([, , what = '']) => what.split(/, (?!doubled)/))
  const done = Object.keys(faults).map((name) => name.replace(/^\w+: /, ''))
  expect(named.toSorted()).toEqual(done.toSorted())
})

test('the page names every law of the checker, and nothing else', () => {
  expect(rowsBelow('held against these laws:').map(([, law]) => law)).toEqual(lawNames)
})

test('the page names every way to run tests', () => {
  const { scripts } = z
    .object({ scripts: z.record(z.string(), z.string()) })
    .parse(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')))
  const commands = Object.keys(scripts).filter((name) => /^(test:|bench)/.test(name))
  expect(commands.filter((name) => !page.includes(`\`npm run ${name}`))).toEqual([])
})

test('each folder of tests is one that the page tells of', () => {
  const told: Record<string, string> = {
    audit: '`npm run audit`',
    bench: '| Speed |',
    cluster: '| Cluster |',
    containers: '| Containers |',
    docs: '| These pages |',
    faults: '| Faults |',
    fuzz: '| Fuzz |',
    journeys: '| Journeys |',
    simulator: '`test/simulator`',
  }
  const folders = readdirSync(import.meta.dirname, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() && entry.name !== 'node_modules' ? [entry.name] : [],
  )
  expect(folders.toSorted()).toEqual(Object.keys(told))
  for (const words of Object.values(told)) expect(page).toContain(words)
})
