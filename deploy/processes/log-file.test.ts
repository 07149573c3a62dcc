import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { lastLines } from './log-file.ts'

test('the last words are those since it was looked at, and of a log that was emptied since all that it has', () => {
  const folder = mkdtempSync(join(tmpdir(), 'log-file-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'nats.log')
  writeFileSync(file, 'earlier\nlater\n')
  expect(lastLines(file, 'earlier\n'.length)).toBe('later')
  expect(lastLines(file, 100)).toBe('earlier\nlater')
  expect(lastLines(join(folder, 'none.log'), 0)).toBe('')
})
