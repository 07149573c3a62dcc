import { expect, test } from 'vitest'
import { z } from 'zod'
import { timeInput } from './contracts/fields.ts'
import { faultWords } from './fault-words.ts'
import { faultOf } from './faults.ts'

const body = z.object({
  name: z.string().min(1).max(3).optional(),
  to: z.string().default('x'),
  count: z.int().min(1).max(5).optional(),
  price: z.number().optional(),
  is_dry: z.boolean().optional(),
  tags: z.array(z.string()).min(1).max(2).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  status: z.enum(['open', 'resolved']).optional(),
  product: z.literal('chat').optional(),
  email: z.email().optional(),
  since: timeInput.optional(),
  code: z
    .string()
    .regex(/^[a-z]+$/)
    .optional(),
  header: z
    .discriminatedUnion('type', [z.object({ type: z.literal('text') }), z.object({ type: z.literal('image') })])
    .optional(),
  pin: z
    .string()
    .regex(/^\d{6}$/, 'must be 6 digits')
    .optional(),
})

const date = 'must be an ISO 8601 date-time with its offset, such as 2026-03-01T12:00:00Z'

test.each([
  [{ name: 5 }, 'name: must be a string.'],
  [{ name: null }, 'name: must be a string.'],
  [{ name: ['a', 'b'] }, 'name: must be a string, not a list.'],
  [{ name: '' }, 'name: must have at least 1 character.'],
  [{ name: 'abcd' }, 'name: must have at most 3 characters.'],
  [{ count: '5' }, 'count: must be a number.'],
  [{ count: 1.5 }, 'count: must be a whole number.'],
  [{ count: 0 }, 'count: must be at least 1.'],
  [{ count: 6 }, 'count: must be at most 5.'],
  [{ price: '5' }, 'price: must be a number.'],
  [{ is_dry: 'true' }, 'is_dry: must be true or false.'],
  [{ tags: 'a' }, 'tags: must be a list.'],
  [{ tags: [] }, 'tags: must have at least 1 item.'],
  [{ tags: ['a', 'b', 'c'] }, 'tags: must have at most 2 items.'],
  [{ tags: ['a', 5] }, 'tags[1]: must be a string.'],
  [{ metadata: [] }, 'metadata: must be an object.'],
  [{ status: 'x' }, 'status: must be one of "open", "resolved".'],
  [{ product: 'x' }, 'product: must be "chat".'],
  [{ email: 'x' }, 'email: must be an e-mail address.'],
  [{ since: '2026-03-01' }, `since: ${date}.`],
  [{ since: '2026-03-01T12:00:00 02:00' }, `since: ${date}; in a URL the + of an offset is written %2B.`],
  [{ code: '5' }, 'code: must match /^[a-z]+$/.'],
  [{ header: {} }, 'header.type: must be one of "text", "image".'],
  [{ header: { type: 'x' } }, 'header.type: must be one of "text", "image".'],
  [{ pin: '5' }, 'pin: must be 6 digits.'],
  [[], 'The request body: must be an object.'],
])('of %j it is said that %s', (given, words) => {
  const { error } = body.safeParse(given, { error: faultWords })
  expect(error && faultOf(error, 'body').message).toBe(words)
})

test.each(['name', 'count', 'is_dry', 'tags', 'metadata', 'status', 'product', 'since'] as const)(
  'of an absent %s it is said that it is required',
  (field) => {
    const { error } = body.required().safeParse({ ...complete, [field]: undefined }, { error: faultWords })
    expect(error && faultOf(error, 'body').message).toBe(`${field}: is required.`)
  },
)

const complete = {
  name: 'a',
  to: 'b',
  count: 1,
  price: 1,
  is_dry: true,
  tags: ['a'],
  metadata: {},
  status: 'open',
  product: 'chat',
  email: 'a@example.com',
  since: '2026-03-01T12:00:00Z',
  code: 'a',
  header: { type: 'text' },
  pin: '123456',
}
