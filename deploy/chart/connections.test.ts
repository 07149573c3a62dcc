import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { dataServices } from '../migration-files.ts'
import { repository } from '../stack/options.ts'

const read = (path: string) => readFileSync(join(repository, path), 'utf8')

/** The pool, the relay's session and, at times, two of the housekeeping. */
const poolOf = Number(/\bmax = (\d+)\b/.exec(read('shared/database/database.ts'))?.[1])
const ofInstance = poolOf + 3
/** Messaging has one more, of its dispatcher. */
const ofMessaging = ofInstance + 1

const { services } = z
  .object({
    services: z.record(z.string(), z.object({ replicas: z.object({ min: z.number(), max: z.number() }) })),
  })
  .parse(parse(read('deploy/chart/values.yaml')))
const sumOf = (instancesOf: (service: string) => number) =>
  dataServices.reduce((sum, name) => sum + instancesOf(name) * (name === 'messaging' ? ofMessaging : ofInstance), 0)
const chart = (which: 'min' | 'max') => sumOf((name) => services[name]?.replicas[which] ?? NaN)
const oneOfEach = sumOf(() => 1)

test('the page says how many connections of Postgres are taken', () => {
  const [, section = ''] = read('docs/deploying.md').split('## Connections of Postgres')
  // Kubernetes starts the next pod while an old one, which it counts no more, still ends.
  const counts = [oneOfEach, chart('min'), 2 * chart('min'), chart('max'), 2 * chart('max')]
  const shown = [...section.matchAll(/^\| .+ \| (\d+) \|$/gm)].map(([, count]) => Number(count))
  expect(shown).toEqual(counts)
  expect(section).toContain(`takes up to ${ofInstance} connections`)
  for (const page of ['deploy/chart/values.yaml', 'docs/running.md'])
    expect(read(page)).toContain(`takes up to ${ofMessaging}`)
})

test('the compose file takes more than its services do while they are replaced', () => {
  const max = Number(/max_connections=(\d+)/.exec(read('deploy/compose.yaml'))?.[1])
  expect(max).toBeGreaterThan(2 * oneOfEach)
})
