import type { z } from 'zod'

/** A control body that says what it should not: answered with 400. */
export class BadField extends Error {
  override readonly name = 'BadField'
  readonly field: string

  constructor(field: string, message: string) {
    super(message)
    this.field = field
  }
}

/** @throws BadField for bytes that are not JSON, or the first field that the schema refuses */
export const parseBody = <S extends z.ZodType>(schema: S, bytes: unknown): z.output<S> =>
  parseValue(schema, json(bytes))

/** @throws BadField for the first field that the schema refuses */
export function parseValue<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  if (!issue) throw new BadField('body', result.error.message)
  const path = issue.code === 'unrecognized_keys' ? [...issue.path, ...issue.keys.slice(0, 1)] : issue.path
  throw new BadField(path.map(String).join('.') || 'body', issue.message)
}

function json(bytes: unknown): unknown {
  try {
    return JSON.parse(Buffer.isBuffer(bytes) ? bytes.toString() : '')
  } catch (err) {
    throw new BadField('body', `The body must be JSON: ${err instanceof Error ? err.message : String(err)}.`)
  }
}
