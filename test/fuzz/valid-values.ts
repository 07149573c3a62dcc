import fc from 'fast-check'
import type { Schema } from './document.ts'
import type { World } from './world.ts'

type Arbitrary = fc.Arbitrary<unknown>

/** What stands in the place of chance where only something real gets beyond the first check, by the name of the field. */
export type Known = Record<string, Arbitrary>

/** Values that a schema takes, with the ids of things that are there. */
export function valueOf(schema: Schema, known: Known, name = ''): Arbitrary {
  const real = known[name]
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (real && !isObject(schema)) return real
  if (schema.enum) return fc.constantFrom(...schema.enum)
  const parts = schema.oneOf ?? schema.anyOf
  if (parts) return fc.oneof(...parts.map((part) => valueOf(part, known, name)))
  switch (schema.type) {
    case 'object':
      return objectOf(schema, known)
    case 'array':
      return arrayOf(schema, known, name)
    case 'string':
      return textOf(schema)
    case 'integer':
      return fc.integer({ min: schema.minimum ?? -(2 ** 53) + 1, max: schema.maximum ?? 2 ** 53 - 1 })
    case 'number':
      return fc.double({ noNaN: true, noDefaultInfinity: true })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case undefined:
    default:
      return fc.jsonValue({ maxDepth: 2 })
  }
}

const isObject = ({ properties }: Schema) => properties !== undefined

/** In order of the schema; a file comes by link or by id, never both. */
function objectOf({ properties, required = [], additionalProperties }: Schema, known: Known): Arbitrary {
  if (!properties)
    return fc.dictionary(fc.string({ unit: 'grapheme', maxLength: 20 }), freeForm(additionalProperties), { maxKeys: 5 })
  const fields = Object.entries(properties).filter(([, schema]) => !schema.not)
  const model = Object.fromEntries(fields.map(([key, schema]) => [key, valueOf(schema, known, key)]))
  const record = fc.record(model, { requiredKeys: required, noNullPrototype: true }) as fc.Arbitrary<
    Record<string, unknown>
  >
  if (!('link' in properties && 'id' in properties)) return record
  return fc.tuple(record, fc.boolean(), valueOf(properties['link'] ?? {}, known, 'link'), known['media_id'] ?? fc.constant('1'))
    .map(([value, byLink, link, id]) => {
      const { link: _link, id: _id, ...rest } = value
      return { ...(byLink ? { link } : { id }), ...rest }
    }) // prettier-ignore
}

const freeForm = (schema: Schema | undefined): Arbitrary =>
  schema && Object.keys(schema).length > 0 ? valueOf(schema, {}) : fc.jsonValue({ maxDepth: 2 })

function arrayOf({ items = {}, minItems = 0, maxItems = 8 }: Schema, known: Known, name: string): Arbitrary {
  const maxLength = Math.max(minItems, Math.min(maxItems, 3))
  const item = valueOf(items, known, name)
  // Lists of words have no word twice.
  if (items.type === 'string') return fc.uniqueArray(item, { minLength: minItems, maxLength })
  return fc.array(item, { minLength: minItems, maxLength })
}

function textOf({ format, pattern, minLength = 0, maxLength = 300 }: Schema): Arbitrary {
  if (format === 'date-time') return times
  if (format === 'uri') return fc.webUrl()
  if (format === 'email') return fc.emailAddress()
  if (pattern) return fc.stringMatching(new RegExp(pattern)).filter((text) => text.length <= maxLength)
  return fc.oneof(
    { weight: 6, arbitrary: fc.string({ unit: 'grapheme', minLength, maxLength: Math.min(maxLength, 40) }) },
    { weight: 2, arbitrary: fc.string({ unit: 'binary', minLength, maxLength: Math.min(maxLength, 40) }) },
    // The longest, of characters beyond the basic plane.
    { weight: 1, arbitrary: fc.constant('𝒳'.repeat(maxLength)) },
    { weight: 1, arbitrary: fc.constantFrom(...awkward).filter((text) => text.length >= minLength && text.length <= maxLength) },
  ).filter((text) => !text.includes('\0') && text.isWellFormed() && Array.from(text).length <= maxLength) // prettier-ignore
}

const times = fc
  .date({ min: new Date('2020-01-01'), max: new Date('2035-01-01'), noInvalidDate: true })
  .map((date) => date.toISOString())

/** What has broken others: empty and blank text, words that languages know, markup, SQL, other scripts, invisible characters. */
const awkward = [
  ' ', '__proto__', 'constructor', 'null', 'undefined', 'NaN', '%00', '%', '\\', "'; drop table messages; --", '${7*7}',
  '<script>alert(1)</script>', '../../etc/passwd', '\u202Eabc', '\u200B', '\uFEFF', 'ﷺ'.repeat(3), 'ß', 'İ', 'e\u0301', '👩‍👩‍👧‍👦',
  '\r\nX-Injected: 1', '\u2028', '$1', ':name', '{{1}}', '-- ', '\u007f',
] // prettier-ignore

/** The real values of a world. */
export function knownOf(world: World): Known {
  const { ids, people, phone, inbound, receiver, templates } = world
  const from = (values: string[]) => fc.constantFrom(...values.slice(0, 4))
  // Nobody but ourselves is asked for a file or told of an event.
  const local = fc.constantFrom(receiver.url, `${receiver.url}?n=1`)
  return {
    to: fc.oneof(from(people), fc.constantFrom('15550123456', '+44 20 7946 0018', 'US.13491208655302741918')),
    phone_number: fc.integer({ min: 2_000_000, max: 9_999_999 }).map((n) => `+1555${n}`),
    message_id: fc.oneof(from(inbound), fc.constant('wamid.unknown')),
    media_id: fc.oneof(from(ids['med'] ?? []), fc.constant('no-such-file')),
    label_id: from(ids['lbl'] ?? []),
    contact_ids: fc.array(fc.oneof(from(ids['ctc'] ?? []), fc.constant('nobody')), { maxLength: 5 }),
    team_id: from(ids['team'] ?? []),
    subscription_id: from(ids['wbs'] ?? []),
    customer_id: from(ids['cus'] ?? []),
    contact_id: from(ids['ctc'] ?? []),
    conversation_id: from(ids['cnv'] ?? []),
    phone_number_ids: fc.constantFrom(null, [], [phone]),
    link: fc.constantFrom(world.fileUrl, 'http://127.0.0.1:1/none'),
    url: local,
    limit: fc.integer({ min: 1, max: 100 }).map(String),
    language: fc.constantFrom('en_US', 'de', 'pt_BR'),
    name: fc.oneof(from(templates), fc.stringMatching(/^[a-z0-9_]{1,40}$/)),
    emoji: fc.constantFrom('', '👍', '👩‍👩‍👧‍👦'),
  }
}
