import type { Schema } from './document.ts'

/** Values that stand for what is there, by the name of their field. */
export type Real = Record<string, unknown>

/** Values that a schema takes, with every field: one for each part of each choice in it. */
export function samplesOf(schema: Schema, real: Real, name = ''): unknown[] {
  if (schema.const !== undefined) return [schema.const]
  if (name in real && !schema.properties) return [real[name]]
  if (schema.enum) return name === 'type' ? schema.enum : schema.enum.slice(0, 1)
  const parts = schema.oneOf ?? schema.anyOf
  if (parts) return parts.filter(({ type }) => type !== 'null').flatMap((part) => samplesOf(part, real, name))
  switch (schema.type) {
    case 'object':
      return objectsOf(schema, real)
    case 'array':
      return samplesOf(schema.items ?? {}, real, name).map((item) => [item])
    case 'string':
      return [textOf(schema)]
    case 'integer':
    case 'number':
      return [schema.minimum ?? 1]
    case 'boolean':
      return [true]
    case 'null':
    case undefined:
    default:
      return [{ some: 'thing' }]
  }
}

function objectsOf({ properties }: Schema, real: Real): unknown[] {
  if (!properties) return [{ some: 'thing' }]
  const fields = Object.entries(properties)
    .filter(([, schema]) => !schema.not)
    .map(([key, schema]) => [key, samplesOf(schema, real, key)] as const)
  const count = Math.max(1, ...fields.map(([, samples]) => samples.length))
  const all = Array.from({ length: count }, (_, n) =>
    Object.fromEntries(fields.map(([key, samples]) => [key, samples[n % samples.length]])),
  )
  if (!('link' in properties && 'id' in properties)) return all
  // A file comes by link or by id, never both.
  return all.flatMap(({ link, id, ...rest }) => [
    { link, ...rest },
    { id, ...rest },
  ])
}

function textOf({ format, pattern, minLength = 0, maxLength = 300 }: Schema): string {
  if (format === 'date-time') return '2026-03-01T12:00:00Z'
  if (format === 'uri') return 'http://127.0.0.1:1/none'
  if (format === 'email') return 'ana@example.com'
  const prefix = /^\^(\w+?)_\[/.exec(pattern ?? '')?.[1]
  if (prefix !== undefined) return `${prefix}_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD`
  const fits = ['some', 'abc', 'DE', 'USD', 'en_US', '123456', '1', 'US.13491208655302741918']
  return fits.find((text) => text.length >= minLength && text.length <= maxLength && (!pattern || new RegExp(pattern).test(text))) ?? 'x'.repeat(minLength) // prettier-ignore
}

/** Template sends with a parameter of each type where it may stand. */
export function templateSends({ to, link }: Real): unknown[] {
  const blocks = {
    text: 'Ana',
    currency: { fallback_value: '€ 1', code: 'EUR', amount_1000: 1_000 },
    date_time: { fallback_value: 'today' },
    image: { link },
    video: { link },
    document: { link, filename: 'words.txt' },
    location: { latitude: 1, longitude: '2', name: 'Here', address: 'There' },
    payload: 'yes',
    coupon_code: 'SALE',
    action: { flow_token: 'x' },
  }
  const inHeader = new Set(['image', 'video', 'document', 'location'])
  return Object.entries(blocks).map(([type, block]) => {
    const parameters = [{ type, parameter_name: 'name', [type]: block }]
    const components = [
      { type: inHeader.has(type) ? 'header' : 'body', parameters },
      { type: 'button', sub_type: 'url', index: 0, parameters: [{ type: 'payload', payload: 'x' }] },
    ]
    const language = { code: 'en_US', policy: 'deterministic' }
    return {
      messaging_product: 'chat',
      to,
      type: 'template',
      template: { name: 'order_shipped', language, components },
    }
  })
}
