import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { z } from 'zod'
import { repository } from '../stack/options.ts'

const read = (file: string) => readFileSync(join(repository, 'deploy/monitoring', file), 'utf8')

const Alert = z.strictObject({
  alert: z.string().regex(/^[A-Z][A-Za-z]+$/),
  expr: z.string(),
  for: z.string().optional(),
  labels: z.strictObject({ severity: z.enum(['critical', 'warning', 'info']) }),
  annotations: z.strictObject({ summary: z.string(), runbook_url: z.string() }),
})
const { groups } = z.object({ groups: z.array(z.object({ rules: z.array(Alert) })) }).parse(parse(read('rules.yaml')))

export const alerts: z.output<typeof Alert>[] = groups.flatMap(({ rules }) => rules)

const Dashboard = z.object({
  panels: z.array(z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })).default([]) })),
})

export const dashboard: z.output<typeof Dashboard> = Dashboard.parse(JSON.parse(read('dashboard.json')))
