import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { breaksBetween, type Direction, type Schema } from './contract-changes.ts'
import { contractsNow, partNames, readSnapshot, schemasOf } from './contract-snapshot.ts'

// While a release replaces another, both are there: what yesterday's wrote is read by today's, and the other way round. So
// contracts only add. `node deploy/run.mjs test/write-contracts.ts` writes the snapshot anew, at a release.

const { contracts, messages } = readSnapshot()

describe('since the last release', () => {
  test.each(Object.keys(contracts))('%s only added', (subject) => {
    const contract = contractsNow.get(subject)
    expect(contract, 'the contract is gone').toBeDefined()
    if (!contract) return
    const now: Partial<Record<string, Schema>> = schemasOf(contract)
    const breaks = Object.entries(contracts[subject] ?? {}).flatMap(([part, before]) =>
      breaksBetween(before, now[part] ?? {}, partNames[part as keyof typeof partNames]).map(
        (what) => `${part}: ${what}`,
      ),
    )
    expect(breaks).toEqual([])
  })
})

describe('a message of the last release is understood', () => {
  test.each(Object.entries(messages))('%s', (subject, { body, answer, event }) => {
    const contract = contractsNow.get(subject)
    if (contract?.kind === 'rpc') {
      if (body !== undefined) expect(contract.body.safeParse(body).error).toBeUndefined()
      expect(contract.answer.parse(answer)).toEqual(answer)
      return
    }
    // Our own webhook events lie on the stream in their envelope.
    const data = contract?.webhook?.source === 'svc' ? (event as { data: unknown }).data : event
    expect(contract?.data.parse(data)).toEqual(data)
  })
})

describe('what counts as a break', () => {
  const made = (schema: z.ZodType, direction: Direction) =>
    z.toJSONSchema(schema, { io: direction === 'taken' ? 'input' : 'output' }) as Schema
  const breaks = (direction: Direction, before: z.ZodType, after: z.ZodType) =>
    breaksBetween(made(before, direction), made(after, direction), direction)
  const base = z.object({
    name: z.string().max(10),
    state: z.enum(['on', 'off']),
    list: z.array(z.object({ id: z.string() })),
    count: z.int(),
  })

  test.each<[string, Direction, z.ZodType, string[]]>([
    ['a new optional field', 'taken', base.extend({ more: z.string().optional() }), []],
    ['a new field with a default', 'taken', base.extend({ more: z.string().default('') }), []],
    ['a new required field', 'taken', base.extend({ more: z.string() }), ['/more: is required now']],
    ['a new field of an answer', 'given', base.extend({ more: z.string() }), []],
    ['a field that is gone', 'given', base.omit({ name: true }), ['/name: is gone']],
    ['a field that is gone', 'taken', base.omit({ name: true }), ['/name: is gone']],
    ['a field that may be missing', 'given', base.partial({ name: true }), ['/name: may be missing now']],
    ['a field that may be missing', 'taken', base.partial({ name: true }), []],
    ['a value that is gone', 'taken', base.extend({ state: z.enum(['on']) }), ['/state: "off" is gone']],
    ['a value that is gone', 'given', base.extend({ state: z.literal('on') }), ['/state: "off" is gone']],
    ['a new value', 'taken', base.extend({ state: z.enum(['on', 'off', 'new']) }), []],
    ['another type', 'taken', base.extend({ name: z.number() }), ['/name: was string, is number']],
    [
      'a null that is new',
      'given',
      base.extend({ name: z.string().nullable() }),
      ['/name: was string, is string|null'],
    ],
    ['a null that is new', 'taken', base.extend({ name: z.string().max(10).nullable() }), []],
    ['a shorter text', 'taken', base.extend({ name: z.string().max(9) }), ['/name: maxLength was 10, is 9']],
    ['a number with its width', 'taken', base.extend({ count: z.int().meta({ format: 'int64' }) }), []],
    ['a text of a form', 'taken', base.extend({ name: z.url().max(10) }), ['/name: format was undefined, is uri']],
    ['a longer text', 'taken', base.extend({ name: z.string().max(11) }), []],
    ['a field inside that is gone', 'given', base.extend({ list: z.array(z.object({})) }), ['/list/[]/id: is gone']],
  ])('%s, %s', (_what, direction, after, expected) => {
    expect(breaks(direction, base, after)).toEqual(expected)
  })

  test('a form of a union that is gone, and none that is new', () => {
    const form = (type: string) => z.object({ type: z.literal(type) })
    const [text, image, video] = [form('text'), form('image'), form('video')]
    expect(breaks('taken', z.union([text, image]), z.union([text, image, video]))).toEqual([])
    expect(breaks('taken', z.union([text, image]), text)).toHaveLength(1)
    expect(breaks('given', z.union([text, image]), z.union([text, video]))).toHaveLength(2)
  })
})
