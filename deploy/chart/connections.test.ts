import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { dataServices } from '../migration-files.ts'
import { repository } from '../stack/options.ts'

const read = (path: string) => readFileSync(join(repository, path), 'utf8')

/** The pool, the relay's session and, at times, that of the housekeeping. */
const poolOf = Number(/\bmax = (\d+)\b/.exec(read('shared/database/database.ts'))?.[1])
const ofInstance = poolOf + 2

const { services } = z
  .object({
    services: z.record(z.string(), z.object({ replicas: z.object({ min: z.number(), max: z.number() }) })),
  })
  .parse(parse(read('deploy/chart/values.yaml')))
const instances = (which: 'min' | 'max') =>
  dataServices.reduce((sum, name) => sum + (services[name]?.replicas[which] ?? NaN), 0)

test('the page says how many connections of Postgres are taken', () => {
  const [, section = ''] = read('docs/deploying.md').split('## Connections of Postgres')
  // Kubernetes starts the next pod while an old one, which it counts no more, still ends.
  const counts = [
    dataServices.length,
    ...(['min', 'max'] as const).flatMap((which) => [instances(which), 2 * instances(which)]),
  ]
  const shown = [...section.matchAll(/^\| .+ \| (\d+) \|$/gm)].map(([, count]) => Number(count))
  expect(shown).toEqual(counts.map((count) => count * ofInstance))
  expect(section).toContain(`takes up to ${ofInstance} connections`)
  expect(read('deploy/chart/values.yaml')).toContain(`takes up to ${ofInstance} connections`)
})

test('the compose file takes more than its services do while they are replaced', () => {
  const max = Number(/max_connections=(\d+)/.exec(read('deploy/compose.yaml'))?.[1])
  expect(max).toBeGreaterThan(2 * dataServices.length * ofInstance)
})
