import { expect, test } from 'vitest'
import { z } from 'zod'
import { inOurWords } from './fault-words.ts'
import { faultOf } from './faults.ts'

const schema = z
  .object({
    product: z.literal('chat'),
    name: z.string().min(2),
    short: z.string().max(1),
    size: z.int().min(1).max(720),
    on: z.boolean(),
    buttons: z.array(z.string()).min(1).max(3),
    color: z.enum(['gray', 'red']),
    at: z.iso.datetime({ offset: true }),
    email: z.email(),
    code: z.string().regex(/^[A-Z]{3}$/),
    pin: z.string().regex(/^\d{6}$/, 'must be 6 digits'),
    header: z.discriminatedUnion('type', [
      z.object({ type: z.literal('text') }),
      z.object({ type: z.literal('image'), image: z.object({ id: z.string() }) }),
    ]),
    language: z.union([
      z
        .string()
        .min(2)
        .transform((code) => ({ code })),
      z.object({ code: z.string(), policy: z.literal('deterministic').optional() }),
    ]),
  })
  .partial()

function saidOf(value: unknown, of: z.ZodType = schema) {
  const { error } = of.safeParse(value, inOurWords)
  return error && faultOf(error, 'body').message
}

test.each([
  [{ product: 'whatsapp' }, 'product: must be "chat".'],
  [{ name: 5 }, 'name: must be a string, not a number.'],
  [{ name: null }, 'name: must be a string, not null.'],
  [{ name: 'a' }, 'name: must have at least 2 characters.'],
  [{ language: 'e' }, 'language: must have at least 2 characters.'],
  [{ short: 'ab' }, 'short: must have at most 1 character.'],
  [{ size: 0 }, 'size: must be at least 1.'],
  [{ size: 721 }, 'size: must be at most 720.'],
  [{ size: 1e20 }, 'size: must be at most 720.'],
  [{ size: -1e20 }, 'size: must be at least 1.'],
  [{ size: 1.5 }, 'size: must be a whole number.'],
  [{ on: 'true' }, 'on: must be true or false, not a string.'],
  [{ buttons: {} }, 'buttons: must be an array, not an object.'],
  [{ buttons: [] }, 'buttons: must have at least 1 item.'],
  [{ buttons: ['a', 'b', 'c', 'd'] }, 'buttons: must have at most 3 items.'],
  [{ color: 'mauve' }, 'color: must be one of gray, red.'],
  [{ color: null }, 'color: must be one of gray, red, not null.'],
  [{ color: ['gray', 'red'] }, 'color: must be one of gray, red, not an array.'],
  [{ product: 5 }, 'product: must be "chat", not a number.'],
  [{ at: '2026-03-01' }, 'at: must be an ISO 8601 date-time with an offset, such as 2026-03-01T12:00:00Z.'],
  [
    { at: '2026-03-01T12:00:00 02:00' },
    'at: must be an ISO 8601 date-time with an offset, such as 2026-03-01T12:00:00Z: write its + as %2B in a URL.',
  ],
  [{ email: 'nobody' }, 'email: must be an e-mail address.'],
  [{ code: 'eur' }, 'code: must match /^[A-Z]{3}$/.'],
  [{ pin: '1' }, 'pin: must be 6 digits.'],
  [{ header: { type: 'audio' } }, 'header.type: must be one of text, image.'],
  [{ header: { type: ['text'] } }, 'header.type: must be one of text, image, not an array.'],
  [{ header: { type: null } }, 'header.type: must be one of text, image, not null.'],
  [{ header: {} }, 'header.type: is required, and must be one of text, image.'],
  [{ header: { type: 'image' } }, 'header.image: is required.'],
  [{ language: 5 }, 'language: must be a string or an object.'],
  [{ language: 'e' }, 'language: must have at least 2 characters.'],
  [{ language: {} }, 'language.code: is required.'],
  [{ language: { code: 'en', policy: 'fallback' } }, 'language.policy: must be "deterministic".'],
  [[], 'The request body: must be an object, not an array.'],
])('of %j it says %s', (value, said) => {
  expect(saidOf(value)).toBe(said)
})

test.each([
  [z.literal('chat'), 'field: is required, and must be "chat".'],
  [z.string().min(2), 'field: is required.'],
  [z.enum(['gray', 'red']), 'field: is required, and must be one of gray, red.'],
  [schema.shape.language.unwrap(), 'field: is required, and must be a string or an object.'],
])('what is absent is called so', (field, said) => {
  expect(saidOf({}, z.object({ field }))).toBe(said)
})
