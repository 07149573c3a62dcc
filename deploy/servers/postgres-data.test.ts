import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { postgres } from './postgres.ts'
import { locateData } from './postgres-data.ts'

test('the password is kept by a start that can write nothing', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'postgres-data-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  const { password } = locateData(dataDir)
  const locate = `import { locateData } from ${JSON.stringify(new URL('postgres-data.ts', import.meta.url).href)}
    console.log(locateData(${JSON.stringify(dataDir)}).password)`
  // No byte into any file, as on a full disk.
  const limited = ['-c', 'ulimit -f 0; exec "$@"', 'sh', process.execPath, '--input-type=module', '-e', locate]
  const { stdout } = spawnSync('/bin/sh', limited, { encoding: 'utf8' })
  expect(stdout.trim()).toBe(password)
  expect(locateData(dataDir).password).toBe(password)
})

test.each(['postgres/data', 'postgres-container'])('no password is made up for the database that is in %s', (name) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'postgres-data-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  mkdirSync(join(dataDir, name), { recursive: true })
  expect(() => locateData(dataDir)).toThrow(`postgres.json is missing in ${dataDir}`)
  expect(existsSync(join(dataDir, 'postgres.json'))).toBe(false)
})

test('an empty disk that is there before the first start is taken', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'postgres-data-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  mkdirSync(join(dataDir, 'postgres/lost+found'), { recursive: true })
  expect(locateData(dataDir).password).toHaveLength(24)
})

test('data that a version made which this machine has not is refused with a sentence', ({ skip }) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'postgres-data-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  skip(postgres.find(dataDir) === undefined, 'no Postgres on this machine')
  const { cluster } = locateData(dataDir)
  mkdirSync(cluster, { recursive: true })
  writeFileSync(join(cluster, 'PG_VERSION'), '9\n')
  expect(() => postgres.find(dataDir)).toThrow(`The data in ${dataDir} was made by Postgres 9, and this machine has`)
})
