import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { kinds, marks, partsOf, readCosts, writeFigures } from './page.ts'
import { scaleTables } from './scale.ts'

const page = readFileSync(join(import.meta.dirname, '../../../docs/capacity.md'), 'utf8')

test('the cores and bytes a second on the page are its costs times the rates', () => {
  const { figures } = partsOf(page)
  for (const table of scaleTables(readCosts(figures))) expect(figures).toContain(table)
})

const cost = {
  operations: 1_000,
  cpuMs: { gateway: 70, messaging: 140, postgres: 210, simulator: 999 },
  bytes: { tables: 2_000_000, wal: 3_000_000, stream: 1_000_000 },
}
const memory = { gateway: { pss: 60, rss: 80 } }
const details = {
  costs: Object.fromEntries(kinds.map((kind) => [kind, cost])),
  memory: { atRest: memory, most: memory },
}
const of = {
  machine: { cores: 2, model: 'some', node: 'v24' },
  takenAt: new Date('2026-01-31T00:00:00Z'),
  others: 0.123,
}

function newPage() {
  const folder = mkdtempSync(join(tmpdir(), 'capacity-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'page.md')
  writeFileSync(file, `Before.\n${marks.begin}\nobsolete\n${marks.end}\nAfter.\n`)
  return file
}

test('the figures of a run replace the old ones, and nothing else', () => {
  const file = newPage()
  writeFigures(file, details, of)
  const { before, figures, after } = partsOf(readFileSync(file, 'utf8'))
  expect([before, after]).toEqual(['Before.\n', '\nAfter.\n'])
  expect(figures).not.toContain('obsolete')
  expect(figures).toContain('| postgres, µs | 210 | 210 | 210 | 210 | 210 |')
  expect(figures).not.toContain('999')
  expect(figures).toContain('Other programs used 12 % of the machine meanwhile.')
  // A send, three callbacks and four deliveries at 210 µs each: 1.68 s of a second, of cores that are 70 % busy.
  expect(figures).toContain('| postgres, cores | 2.4 | 24 | 240 |')
  expect(figures).toContain('| write-ahead log, MB/s | 24 | 240 | 2,400 |')
})

test('a run that has not measured them leaves the page as it is', () => {
  const file = newPage()
  const before = readFileSync(file, 'utf8')
  expect(() => writeFigures(file, undefined, of)).toThrow('has not measured')
  expect(readFileSync(file, 'utf8')).toBe(before)
})
