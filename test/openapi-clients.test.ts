import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

/** What generators make clients of: where something has no name they give it one, and where a set is closed they refuse the rest. */

interface Schema {
  $ref?: string
  type?: string | string[]
  format?: string
  properties?: Record<string, Schema>
  enum?: unknown[]
  'x-extensible-enum'?: string[]
  oneOf?: Schema[]
  anyOf?: Schema[]
  discriminator?: { propertyName: string; mapping: Record<string, string> }
}
interface Operation {
  operationId: string
  security?: object[]
  requestBody?: { content: Record<string, { schema: Schema }> }
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>
}
interface Document {
  paths: Record<string, Record<string, Operation>>
  webhooks: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}

const document = JSON.parse(readFileSync(join(import.meta.dirname, '../docs/openapi.json'), 'utf8')) as Document
const { schemas } = document.components
const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods))
const events = Object.values(document.webhooks).flatMap((methods) => Object.values(methods))

/** Every value of the description with the place where it stands; examples are no part of it. */
function* placesOf(value: unknown, place: string): Generator<[string, Schema]> {
  if (typeof value !== 'object' || value === null) return
  yield [place, value]
  for (const [key, inner] of Object.entries(value))
    if (key !== 'example' && key !== 'examples') yield* placesOf(inner, `${place}/${key}`)
}
const places = [...placesOf(document, '')]
const isNamed = (place: string) => /^\/components\/schemas\/\w+$/.test(place)

test('what is sent and answered has a name', () => {
  const nameless = [...operations.filter(({ security }) => security === undefined), ...events].flatMap(
    ({ operationId, requestBody, responses }) =>
      [requestBody, ...Object.values(responses)]
        .flatMap((part) => Object.values(part?.content ?? {}))
        .filter(({ schema }) => schema.$ref === undefined)
        .map(() => operationId),
  )
  expect(nameless).toEqual([])
})

test('an object that stands in two places has a name', () => {
  const objects = places.filter(
    ([place, { properties }]) => properties && Object.keys(properties)[1] && !isNamed(place),
  )
  const byContent = Map.groupBy(objects, ([, schema]) => JSON.stringify(schema))
  expect([...byContent.values()].filter((same) => same.length > 1).map((same) => same.map(([place]) => place))).toEqual(
    [],
  )
})

test('an object that may be null has a name', () => {
  const choices = places.flatMap(([place, { anyOf = [], oneOf = [] }]) =>
    [...anyOf, ...oneOf].map((one) => ({ place, one })),
  )
  expect(choices.filter(({ one }) => one.properties).map(({ place }) => place)).toEqual([])
})

test('what may be null says so in its type, unless it has a name', () => {
  const choices = places.filter(([, { oneOf, anyOf }]) => (oneOf ?? anyOf)?.some(({ type }) => type === 'null'))
  expect(choices.filter(([, { anyOf }]) => anyOf?.[0]?.$ref === undefined).map(([place]) => place)).toEqual([])
  expect(schemas['Conversation']?.properties?.['last_message_at']).toEqual({
    type: ['string', 'null'],
    format: 'date-time',
    examples: ['2026-03-01T12:00:00.000Z'],
  })
})

test('a number that may need more than 32 bits says so', () => {
  const formats = places
    .filter(([, { type, format }]) => type === 'number' || format === 'int64')
    .map(([place, { format }]) => [place.split('/').slice(3).join('/'), format])
  expect(formats).toEqual([
    ['InboundMessage/properties/location/properties/latitude', 'double'],
    ['InboundMessage/properties/location/properties/longitude', 'double'],
    ['TemplateParameter/properties/currency/properties/amount_1000', 'int64'],
  ])
})

test('a choice between objects says which field tells them apart', () => {
  const choices = places.filter(([, { oneOf, anyOf }]) => (oneOf ?? anyOf ?? []).filter(({ $ref }) => $ref).length > 1)
  expect(choices.length).toBeGreaterThan(2)
  for (const [place, { oneOf = [], discriminator }] of choices) {
    // A send has `type`, a read receipt `status`.
    if (place === '/components/schemas/SendMessageRequest') continue
    expect(Object.values(discriminator?.mapping ?? {}), place).toEqual(oneOf.map(({ $ref }) => $ref))
    for (const [word, $ref] of Object.entries(discriminator?.mapping ?? {}))
      expect(schemas[$ref.split('/').at(-1) ?? '']?.properties?.[discriminator?.propertyName ?? '']).toMatchObject({
        const: word,
      })
  }
})

test('no component has the name of an operation, or of what every JavaScript program has', () => {
  const taken = new Set([...operations, ...events].map(({ operationId }) => operationId.toLowerCase()))
  expect(Object.keys(schemas).filter((name) => taken.has(name.toLowerCase()) || name in globalThis)).toEqual([])
})

test('what is said to be open is text', () => {
  const open = places.filter(([, schema]) => 'x-extensible-enum' in schema)
  expect(open.map(([place]) => place.split('/').slice(3).join('/')).toSorted()).toEqual([
    'ContactUpdatedEvent/properties/data/properties/contact/properties/changed_fields/items',
    'CreatedWebhookSubscription/properties/disabled_reason',
    'EnabledWebhookSubscription/properties/disabled_reason',
    'ErrorCode',
    'InboundContext/properties/media_status',
    'InboundMessage/properties/type',
    'Message/properties/media_status',
    'Message/properties/type',
    'MessageSentEvent/properties/data/properties/message/properties/media_status',
    'MessageSentEvent/properties/data/properties/message/properties/source',
    'WebhookDelivery/properties/error_code',
    'WebhookDeliveryWithPayload/properties/error_code',
    'WebhookSubscription/properties/disabled_reason',
    'WebhookSubscriptionChange/properties/reason',
    'WebhookSubscriptionSummary/properties/disabled_reason',
  ])
  for (const [place, { type }] of open) expect(['string', ['string', 'null']], place).toContainEqual(type)
  expect(open.filter(([, schema]) => schema.enum).map(([place]) => place)).toEqual([])
})

test('an answer has one status, which a program can compare', () => {
  const statuses = operations.flatMap(({ responses }) => Object.keys(responses))
  expect(statuses.filter((status) => !/^\d{3}$/.test(status))).toEqual([])
})

test('the form of an upload has the type before the file', () => {
  expect(Object.keys(schemas['UploadMediaRequest']?.properties ?? {})).toEqual(['type', 'file'])
})
