import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { request } from 'undici'
import { expect } from 'vitest'
import type { StartedStack } from '../start-stack.ts'
import type { Watched } from './watch.ts'

async function scrape(stack: StartedStack) {
  const pages = Object.values(stack.read().services).flatMap((instances) =>
    instances.map(async ({ url }) => (await request(`${url}/metrics`)).body.text()),
  )
  return (await Promise.all(pages)).join('\n')
}

/** Every metric of the dashboard and the rules is there, and tells what has happened. */
export async function readMetrics({ stack }: Watched) {
  const page = await scrape(stack)
  const there = new Set([...page.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name))
  const root = join(import.meta.dirname, '../../..')
  const used = ['dashboard.json', 'rules.yaml'].flatMap((file) => [
    ...readFileSync(join(root, 'deploy/monitoring', file), 'utf8').matchAll(/\b(?:svc|process|nodejs)_[a-z0-9_]+/g),
  ])
  const names = used.map(([name]) => name.replace(/_(bucket|count|sum)$/, ''))
  expect(names.filter((name) => !there.has(name))).toEqual([])

  /** Of each instance that has it; one has it at least. */
  const values = (name: string) => {
    const lines = page.split('\n').filter((line) => line.startsWith(name))
    expect(lines, name).not.toEqual([])
    return lines.map((line) => Number(line.split(' ').at(-1)))
  }
  const sum = (name: string) => values(name).reduce((all, one) => all + one, 0)
  const sends = [
    'svc_http_request_seconds_count{service="gateway",method="POST",route="/v1/:phone_number_id/messages",status="200"}',
    'svc_sends_accepted_total{type="text",service="messaging"}',
    'svc_sends_ended_total{outcome="sent",code="",service="messaging"}',
  ]
  // More where a test before was tried again.
  for (const line of sends) expect(sum(line)).toBeGreaterThanOrEqual(3)
  expect(sum('svc_webhook_subscriptions{status="paused",service="webhooks"}')).toBe(0)
  for (const service of ['messaging', 'directory', 'platform', 'webhooks']) {
    expect(new Set(values(`svc_ready{service="${service}"}`))).toEqual(new Set([1]))
    expect(Math.max(...values(`svc_outbox_oldest_seconds{service="${service}"}`))).toBeLessThan(60)
  }
}

/** No label holds an id, a number or an address. */
export async function readLabels({ stack }: Watched) {
  const labels = [...(await scrape(stack)).matchAll(/"([^"]*)"/g)].map(([, text = '']) => text)
  expect(labels.length).toBeGreaterThan(100)
  expect(labels.filter((text) => /_[0-9A-HJKMNP-TV-Z]{26}|\d{7}|@|https?:/.test(text))).toEqual([])
}
