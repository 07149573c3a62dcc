import { expect, test } from 'vitest'
import { timeInput } from '../contracts/fields.ts'

test.each([
  ['2026-03-01T12:00:00Z', '2026-03-01T12:00:00Z'],
  ['2026-03-01T12:00:00.123456+23:59', '2026-03-01T12:00:00.123456+23:59'],
  ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ['9999-12-31T23:59:59-01:00', '9999-12-31T23:59:59.999Z'],
  ['0000-01-01T00:00:00+01:00', '1970-01-01T00:00:00.000Z'],
  ['1970-01-01T00:00:00+14:00', '1970-01-01T00:00:00.000Z'],
])('%s is taken as %s', (given, taken) => expect(timeInput.parse(given)).toBe(taken))

test.each(['', 'yesterday', '2026-02-30T00:00:00Z', '2026-03-01', '+010000-01-01T00:00:00Z'])(
  '%j is no moment',
  (given) => expect(timeInput.safeParse(given).success).toBe(false),
)
