import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'

const program = fileURLToPath(new URL('new-secrets.ts', import.meta.url))

test('a file that the secrets are led into is for its owner alone', () => {
  const folder = mkdtempSync(join(tmpdir(), 'new-secrets-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'secrets.env')
  const { status } = spawnSync('/bin/sh', ['-c', 'umask 022; "$1" "$2" > "$3"', 'sh', process.execPath, program, file])
  expect(status).toBe(0)
  expect(readFileSync(file, 'utf8')).toMatch(/^SEAL_KEYS=k1:/m)
  expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
})

test('a file that is named is made for its owner alone, and never written over', () => {
  const folder = mkdtempSync(join(tmpdir(), 'new-secrets-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'secrets.env')
  const make = () => spawnSync(process.execPath, [program, file], { encoding: 'utf8' })
  expect(make()).toMatchObject({ status: 0, stdout: '', stderr: '' })
  const made = readFileSync(file, 'utf8')
  expect(made).toMatch(/^SEAL_KEYS=k1:/m)
  expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
  expect(make()).toMatchObject({ status: 1, stderr: expect.stringContaining(`${file} is there already`) })
  expect(readFileSync(file, 'utf8')).toBe(made)
})

test('another form than the two is refused', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, '--kubernets'], { encoding: 'utf8' })
  expect([status, stdout]).toEqual([1, ''])
  expect(stderr).toContain("Unknown option '--kubernets'")
})
