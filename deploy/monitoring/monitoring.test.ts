import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { commands } from '../admin-commands.ts'
import { repository, serviceNames } from '../stack/options.ts'
import { settingsByReader, sources } from '../testing/settings.ts'

const read = (path: string) => readFileSync(join(repository, path), 'utf8')

const Alert = z.strictObject({
  alert: z.string().regex(/^[A-Z][A-Za-z]+$/),
  expr: z.string(),
  for: z.string().optional(),
  labels: z.strictObject({ severity: z.enum(['critical', 'warning', 'info']) }),
  annotations: z.strictObject({ summary: z.string(), runbook_url: z.string() }),
})
const { groups } = z
  .object({ groups: z.array(z.object({ rules: z.array(Alert) })) })
  .parse(parse(read('deploy/monitoring/rules.yaml')))
const alerts = groups.flatMap(({ rules }) => rules)
const page = read('docs/running.md')

/** Names that the code gives to metrics: `name: '…'`, and the keys of those that are read together. */
const declared = new Set(
  sources.flatMap((text) =>
    [...text.matchAll(/(?:name: '|^ *)(svc_[a-z_]+)(?:'|: \{)/gm)].map(([, name = '']) => name),
  ),
)

/** What prom-client measures of a process by itself, and what Prometheus says of a target. */
const given = /^(process|nodejs)_|^up$/

const base = (name: string) => name.replace(/_(bucket|count|sum)$/, '')
const namesIn = (text: string) =>
  [...text.matchAll(/\b(svc_[a-z_]+|process_[a-z_]+|nodejs_[a-z0-9_]+|up)(?=[{[) ]|$)/gm)].map(([, name = '']) =>
    base(name),
  )

const dashboard = z
  .object({
    panels: z.array(z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })).default([]) })),
  })
  .parse(JSON.parse(read('deploy/monitoring/dashboard.json')))

test('every metric of the rules and of the dashboard is one that the code has', () => {
  const used = [
    ...alerts.map(({ expr }) => expr),
    ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ]
  for (const expr of used) {
    const names = namesIn(expr)
    expect(names, expr).not.toEqual([])
    expect(
      names.filter((name) => !declared.has(name) && !given.test(name)),
      expr,
    ).toEqual([])
  }
})

test('every metric of the code is on the dashboard', () => {
  const shown = new Set(dashboard.panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => namesIn(expr))))
  expect([...declared].filter((name) => !shown.has(name))).toEqual([])
})

test('every alert has its section in docs/running.md, and every section its alert', () => {
  const [, section = ''] = page.split(/^## Alerts$/m)
  const headings = [...(section.split(/^## /m)[0]?.matchAll(/^### (.+)$/gm) ?? [])].map(([, title]) => title)
  expect(headings).toEqual(alerts.map(({ alert }) => alert))
  for (const { alert, annotations } of alerts) {
    expect(annotations.runbook_url).toBe(`docs/running.md#${alert.toLowerCase()}`)
  }
})

test('the page names commands that there are', () => {
  const named = [...page.matchAll(/npm run admin -- ([a-z]+(?: [a-z]+)?)/g)].map(([, command = '']) => command)
  expect(named.length).toBeGreaterThan(3)
  const known = new Set([...Object.keys(commands), 'explain', 'secrets count', 'secrets reseal'])
  expect(named.filter((command) => !known.has(command) && !known.has(command.split(' ')[0] ?? ''))).toEqual([])
})

test('the table of settings has what the services read, and which of them', () => {
  const expected = [...settingsByReader()].map(([name, readers]) => [
    name,
    readers.length === serviceNames.length ? 'all' : readers.join(', '),
  ])
  const [, table = ''] = page.split(/^## Settings$/m)
  const rows = [...table.matchAll(/^\| `([A-Z0-9_]+)` \| ([a-z, ]+) \|/gm)].map(([, name = '', who = '']) => [
    name,
    who,
  ])
  expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(expected))
})
