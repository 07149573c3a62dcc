import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buckets } from '@app/shared/metrics/registered.ts'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { commands } from '../administration/commands.ts'
import { repository, serviceNames } from '../stack/options.ts'
import { alerts, dashboard } from '../testing/monitoring.ts'
import { defaultOf, settingsByReader, sources } from '../testing/settings.ts'

const read = (path: string) => readFileSync(join(repository, path), 'utf8')

const page = read('docs/running.md')
const exprOf = (name: string) => alerts.find(({ alert }) => alert === name)?.expr ?? ''

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

test('Prometheus knows the processes by the name that the alerts know', () => {
  const Scrape = z.object({ scrape_configs: z.array(z.object({ job_name: z.string() })) })
  const jobsOf = (file: string) => Scrape.parse(parse(read(file))).scrape_configs.map(({ job_name }) => job_name)
  expect(jobsOf('deploy/monitoring/scrape.yaml')).toEqual(['messaging-service'])
  expect(jobsOf('deploy/monitoring/scrape-kubernetes.yaml')).toEqual(['messaging-service'])
  expect(read('deploy/chart/templates/pod-monitor.yaml')).toMatch(
    /targetLabel: job\n +replacement: messaging-service\n/,
  )
  const named = alerts.flatMap(({ expr }) => [...expr.matchAll(/job="([^"]*)"/g)].map(([, job]) => job))
  expect(new Set(named)).toEqual(new Set(['messaging-service']))
})

test('what other programs tell of themselves under the same names is not taken for ours', () => {
  const exprs = [...alerts, ...dashboard.panels.flatMap(({ targets }) => targets)].map(({ expr }) => expr)
  const common = exprs.flatMap((expr) => [...expr.matchAll(/\b(?:(?:process|nodejs)_\w+|up)\b(?!\()(\{[^}]*\})?/g)])
  expect(common.length).toBeGreaterThan(3)
  for (const [whole, labels = ''] of common) expect(labels, whole).toContain('job="messaging-service"')
})

test('every service is looked for and missed', () => {
  for (const name of serviceNames)
    expect(read('deploy/monitoring/scrape.yaml')).toMatch(new RegExp(`names: .*\\b${name}\\b`))
  const missed = [...exprOf('ServiceMissing').matchAll(/absent\(svc_ready\{service="(\w+)"\}\)/g)]
  expect(missed.map(([, name = '']) => name).toSorted()).toEqual([...serviceNames].toSorted())
})

test('EventsMissed tells also of what was missed before Prometheus asked for the first time', () => {
  expect(exprOf('EventsMissed')).toMatch(/^max by \(consumer\) \(svc_consumer_missed_events_total\) > 0$/)
})

test('CallbacksMissing gives the callbacks of what was sent just now the time to come', () => {
  expect(alerts.find(({ alert }) => alert === 'CallbacksMissing')?.for).toBe('2m')
})

test('lanes that wait are critical only where none of their work is done: a number may have more to send than its pace', () => {
  const critical = alerts.filter(
    ({ expr, labels }) => labels.severity === 'critical' && expr.includes('svc_mailbox_oldest_due_seconds'),
  )
  expect(critical.map(({ expr }) => expr.trim())).toEqual([
    expect.stringMatching(
      /^max by \(service, lanes\) .* > 60\n +unless sum by \(service, lanes\) \(rate\(svc_mailbox_settled_items_total\[5m\]\)\) > 0$/,
    ),
  ])
})

test('what is counted over a time is told as a whole number: Prometheus reckons fractions', () => {
  const counted = alerts.filter(({ expr }) => expr.includes('increase('))
  const told = counted.flatMap(({ annotations: { summary } }) => summary.match(/\{\{ \$value[^}]*\}\}/g) ?? [])
  expect(new Set(told)).toEqual(new Set(['{{ $value | printf "%.0f" }}']))
})

test('HttpSlow asks for a time that is the bound of a bucket: between two of them Prometheus guesses', () => {
  expect(buckets).toContain(Number(/> (\S+)\s*$/.exec(exprOf('HttpSlow'))?.[1]))
})

test('MemoryHigh tells before Kubernetes ends a process for its memory', () => {
  const { services } = z
    .object({
      services: z.record(
        z.string(),
        z.object({ resources: z.object({ limits: z.object({ memory: z.string().regex(/^\d+[GM]i$/) }) }) }),
      ),
    })
    .parse(parse(read('deploy/chart/values.yaml')))
  const bytesOf = (text: string) => Number.parseInt(text, 10) * (text.endsWith('Gi') ? 1024 ** 3 : 1024 ** 2)
  const alarm = Number(/> (\S+)$/.exec(exprOf('MemoryHigh'))?.[1])
  expect(alarm).toBeGreaterThan(0)
  for (const { resources } of Object.values(services))
    expect(alarm).toBeLessThan(0.8 * bytesOf(resources.limits.memory))
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
  const known = new Set([...Object.keys(commands), 'explain', 'help', 'secrets count', 'secrets reseal'])
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

/** Defaults that the table tells in words. */
const inWords = {
  UPSTREAM_DIALOG_URL: "the platform's SDK",
  UPSTREAM_DIALOG_ORIGINS: "the platform's",
  UPSTREAM_SIGNUP_EXTRAS: 'version 4 of the flow',
  EGRESS_ALLOW_CIDRS: 'none',
  RATE_TIERS: '',
  PROBE_PORT: '0: a free one',
  S3_ENDPOINT: "Amazon's",
  OTEL_EXPORTER_OTLP_ENDPOINT: 'none: no traces',
}

test('the table of settings has the defaults of the code', () => {
  const [, table = ''] = page.split(/^## Settings$/m)
  const rows = [...table.matchAll(/^\| `([A-Z0-9_]+)` \| [a-z, ]+ \|(.*?)\|/gm)]
  const told = rows.map(([, name = '', value = '']) => [name, value.replaceAll('`', '').trim()])
  const expected = told.map(([name = '', value]) => {
    const code = defaultOf(name)?.replaceAll(/[['\]_]/g, '')
    const isOptional = code === undefined && value === 'none'
    return [name, inWords[name as keyof typeof inWords] ?? (isOptional ? value : (code ?? ''))]
  })
  expect(told.length).toBeGreaterThan(30)
  expect(Object.fromEntries(told)).toEqual(Object.fromEntries(expected))
})
