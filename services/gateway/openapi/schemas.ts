import { failures } from '@app/shared/api/problem.ts'
import { z } from 'zod'

/** The part of a JSON schema that is looked into here. */
interface JsonSchema {
  $ref?: string
  type?: string
  description?: string
  properties?: Record<string, JsonSchema>
  required?: string[]
}

export interface Schemas {
  /** The JSON schema of what a client sends or gets. What has an id by `meta({ id })` becomes a component. */
  of: (schema: z.ZodType, io: 'input' | 'output') => JsonSchema
  components: Record<string, JsonSchema>
}

export function createSchemas(): Schemas {
  const components: Record<string, JsonSchema> = {}
  return {
    components,
    of(schema, io) {
      const made = z.toJSONSchema(schema, {
        io,
        unrepresentable: 'any',
        override: ({ jsonSchema }) => tidy(jsonSchema),
      })
      const { $schema: _, $defs = {}, ...root } = linked(made)
      for (const [id, definition] of Object.entries($defs)) {
        const known = components[id]
        if (known && JSON.stringify(known) !== JSON.stringify(definition))
          throw new Error(`two schemas have the id ${id}`)
        components[id] = definition
      }
      return root
    },
  }
}

interface Made extends JsonSchema {
  $schema?: string
  $defs?: Record<string, JsonSchema>
}

/** The same schema with its references as OpenAPI has them. */
const linked = (made: object) =>
  JSON.parse(JSON.stringify(made).replaceAll('"#/$defs/', '"#/components/schemas/')) as Made

/** Fields may be added to answers, so clients must not forbid them; a date-time needs no pattern beside its format; a choice of one is none. */
function tidy(schema: Record<string, unknown>) {
  if (schema['additionalProperties'] === false) delete schema['additionalProperties']
  if (schema['format'] === 'date-time') delete schema['pattern']
  const { oneOf: choices } = schema
  if (Array.isArray(choices) && choices.length === 1) {
    delete schema['oneOf']
    Object.assign(schema, choices[0])
  }
  if (!('example' in schema)) return
  schema['examples'] = [schema['example']]
  delete schema['example']
}

const codes = [...new Set(Object.values(failures).map(({ code }) => code))]
const types = [...new Set(Object.values(failures).map(({ type }) => type))]

/** The error envelope, with every code that there is. */
export const errorSchemas = {
  ErrorCode: {
    type: 'string',
    description: 'What went wrong, for programs. Codes may be added.',
    enum: codes,
  },
  Error: {
    type: 'object',
    required: ['error'],
    properties: {
      error: {
        type: 'object',
        required: ['type', 'code', 'message', 'request_id'],
        properties: {
          type: { type: 'string', enum: types },
          code: { $ref: '#/components/schemas/ErrorCode' },
          message: { type: 'string', description: 'What went wrong, for people. May change.' },
          param: { type: 'string', description: 'The offending field, such as `action.buttons[1].reply.title`.' },
          request_id: { type: 'string', description: 'To be quoted in support requests.' },
        },
      },
    },
  },
}
