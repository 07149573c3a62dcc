import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { repository } from '../stack/options.ts'
import { contextIn } from './context.ts'

const copies = ['secrets.env~', 'secrets.env.bak', '.secrets.env.swp', '#secrets.env#']
const secrets = ['secrets.env', ...copies, 'secrets.json', 'secrets', 'staging.env', 'staging.env.1']
const programs = ['admin.ts', 'run.mjs', 'package.json', 'stack/secrets.ts', 'monitoring/rules.yaml']

test('what an operator writes beside the programs, and what an editor leaves of it, is not in the image', () => {
  const folder = mkdtempSync(join(tmpdir(), 'context-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const name of [...secrets, ...programs]) {
    const path = join(folder, 'deploy', name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, '')
  }
  const context = contextIn(folder, readFileSync(join(repository, '.dockerignore'), 'utf8'))
  expect(context.toSorted()).toEqual(programs.map((name) => `deploy/${name}`).toSorted())
})
