import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import { type MediaKind, mediaLimits } from '@app/shared/files/media-kinds.ts'
import { expect, test } from 'vitest'
import { rateTiers } from '../services/platform/organizations/rate-tiers.ts'

const root = join(import.meta.dirname, '..')
const page = readFileSync(join(root, 'docs/limits.md'), 'utf8')

/** What the page says of something: the cells beside it. */
const said = (thing: string) =>
  page
    .split('\n')
    .find((line) => line.startsWith(`| ${thing} |`))
    ?.split('|')
    .slice(2, -1)
    .map((cell) => cell.trim())
    .join(' ')

/** A number that stands in the code as `const name = 256 * 1024`, or as `name: 30`. */
function inCode(file: string, name: string): number {
  const text = readFileSync(join(root, file), 'utf8')
  const [, value] = new RegExp(`\\b${name}(?:: [\\w.]+)?(?: =|:) ([\\d_* ]+)`).exec(text) ?? []
  if (value === undefined) throw new Error(`${file} has no ${name}`)
  return runInNewContext(value) as number
}

const words = (count: number) => count.toLocaleString('en-US')
const gateway = 'services/gateway'
const messaging = 'services/messaging'

test.each([
  ['a JSON body', `${inCode(`${gateway}/exchange/pass-on.ts`, 'bodyLimitBytes') / 1024} KiB`],
  ['a JSON body', `${inCode('shared/api/json.ts', 'maxDepth')} deep`],
  ['a path with its query', words(inCode(`${gateway}/exchange/exchange.ts`, 'maxUrlLength'))],
  ['headers', `${inCode(`${gateway}/http.ts`, 'maxHeaderSize') / 1024} KiB`],
  ['to send a body', `${inCode(`${gateway}/exchange/read-body.ts`, 'bodyTimeoutMs') / 1000} seconds`],
  ['to send a body', `${inCode(`${gateway}/http.ts`, 'requestTimeout') / 60_000} minutes`],
  ['to get the answer, from the body on', `${inCode(`${gateway}/exchange/exchange.ts`, 'deadlineMs') / 1000} seconds`],
  [
    'to get the answer, from the body on',
    `${inCode(`${gateway}/exchange/exchange.ts`, 'outsideDeadlineMs') / 1000} seconds`,
  ],
  ['uploads at a time, for one organization at one gateway', `${inCode(`${gateway}/app.ts`, 'ofOne')}, never`],
  [
    'read receipts and template calls under way to the platform',
    `${inCode(`${messaging}/senders/report-account.ts`, 'asksOfOne')} for one organization`,
  ],
  [
    'templates that the service has to look up, for one business account at one instance of messaging',
    `${inCode(`${messaging}/templates/spending.ts`, 'burst')} at once, then one each ${inCode(`${messaging}/templates/spending.ts`, 'intervalMs') / 1000} seconds`,
  ],
  ['text of a template with its values', words(inCode(`${messaging}/templates/fill-body.ts`, 'maxBodyLength'))],
  ['text of a template with its values', `${inCode(`${messaging}/templates/fill-body.ts`, 'maxBodyBytes') / 1024} KiB`],
  ['an unknown outcome waits for a status', `${inCode(`${messaging}/sends/outcome.ts`, 'parkMs') / 1000} seconds`],
  [
    'the webhook of a message waits for its file',
    `${inCode(`${messaging}/media/begin-copies.ts`, 'eventWaitMs') / 1000} seconds`,
  ],
  [
    'a message waits to be attempted',
    `${inCode('services/platform/organizations/settings.ts', 'message_ttl_hours')} hours`,
  ],
  ['a body', `${inCode('shared/events/events.ts', 'maxEventBytes') / 1024} KiB`],
  [
    'subscriptions',
    words(inCode('services/webhooks/subscriptions/create-webhook-subscription.ts', 'mostSubscriptions')),
  ],
  [
    'deliveries made of your events before they wait their turn',
    `${words(inCode('services/webhooks/fan-out/shares.ts', 'atOnce'))} at once, ${words(inCode('services/webhooks/fan-out/shares.ts', 'aSecond'))} a second`,
  ],
  ['deliveries and attempts', `${inCode('services/webhooks/deliveries/retention.ts', 'keepDays')} days`],
  ['payloads of webhooks', `${inCode('services/webhooks/deliveries/retention.ts', 'keepPayloadDays')} days`],
  [
    'the log of API calls (method, path, status, time, address, why it was refused)',
    `${inCode('services/platform/api-log/record-calls.ts', 'keepDays')} days`,
  ],
  ["the platform's callbacks as they came", `${inCode(`${messaging}/main.ts`, 'keepDays')} days`],
  ['uploaded files that no message has', `${inCode(`${messaging}/media/media.ts`, 'upload') + 1} days`],
])('%s: %s', (thing, value) => expect(said(thing)).toContain(value))

test('a call that waits for the platform as long as it may is answered within the time of a stop', () => {
  const waited = inCode(`${gateway}/exchange/exchange.ts`, 'outsideDeadlineMs')
  const own = inCode(`${messaging}/templates/templates.ts`, 'ownTimeMs')
  expect(waited - own + 1_000).toBeLessThan(inCode('shared/service/stop.ts', 'stopWithinMs'))
})

test.each(Object.entries(rateTiers.parse(undefined)))('the tier %s', (name, rates) =>
  expect(said(`\`${name}\``)).toBe(`${words(rates.write_per_minute)} ${words(rates.read_per_minute)}`),
)

test.each(Object.keys(mediaLimits) as MediaKind[])('files of the kind %s', (kind) => {
  const { types, maxBytes } = mediaLimits[kind]
  expect(said(kind)).toMatch(new RegExp(` ${maxBytes / 1024 / 1024} MB$`))
  for (const type of types.filter((one) => kind !== 'document' || one === 'text/plain'))
    expect(said(kind)).toContain(`\`${type}\``)
})

/** Bounds that the API's description has, by the schema that has them. */
const { components } = JSON.parse(readFileSync(join(root, 'docs/openapi.json'), 'utf8')) as {
  components: { schemas: Record<string, object> }
}
const boundsIn = (schema: string) =>
  [...JSON.stringify(components.schemas[schema]).matchAll(/"(?:maxLength|maxItems|maximum)":(\d+)/g)].map(([, bound]) =>
    Number(bound),
  )

test.each([
  ['text', [4096], 'TextBlock'],
  ['caption', [1024], 'ImageBlock'],
  ["a document's file name", [240], 'DocumentBlock'],
  ['name, e-mail of a customer', [200, 255], 'CreateCustomerRequest'],
  ['a link, or a redirect of a setup link', [2048], 'CreateSetupLinkRequest'],
  ['a link, or a redirect of a setup link', [2048], 'ImageBlock'],
  ['a setup link', [720], 'CreateSetupLinkRequest'],
  ['`url`, `description` of a subscription', [2048, 1000], 'CreateWebhookSubscriptionRequest'],
  ['`phone_number_ids` of a subscription', [1000], 'CreateWebhookSubscriptionRequest'],
  ['signing secrets', [8760], 'CreateWebhookSecretRequest'],
])('the bounds of %s', (thing, bounds, schema) => {
  expect(said(thing)).toContain(bounds.map(words).join(', '))
  expect(boundsIn(schema)).toEqual(expect.arrayContaining(bounds))
})
