import { failures } from '@app/shared/api/problem.ts'
import { z } from 'zod'

/** The part of a JSON schema that is looked into here. */
interface JsonSchema {
  $ref?: string
  type?: string | string[]
  description?: string
  properties?: Record<string, JsonSchema>
  required?: string[]
}

export interface Schemas {
  /** The JSON schema of what a client sends or gets. What has an id by `meta({ id })` becomes a component. */
  of: (schema: z.ZodType, io: 'input' | 'output') => JsonSchema
  /** Makes the schema a component of that name, unless it is one already. Answers what refers to it. */
  named: (name: string, schema: JsonSchema) => Reference
  components: Record<string, JsonSchema>
}

export interface Reference extends JsonSchema {
  $ref: string
}

export function createSchemas(): Schemas {
  const components: Record<string, JsonSchema> = {}
  function add(name: string, schema: JsonSchema) {
    const known = components[name]
    if (known && JSON.stringify(known) !== JSON.stringify(schema)) throw new Error(`two schemas have the name ${name}`)
    components[name] = schema
  }
  return {
    components,
    named(name, schema) {
      if (isReference(schema)) return schema
      add(name, schema)
      return referenceTo(name)
    },
    of(schema, io) {
      const made = z.toJSONSchema(schema, {
        io,
        unrepresentable: 'any',
        override: ({ zodSchema, jsonSchema }) => tidy(zodSchema, jsonSchema),
      })
      const { $schema: _, $defs = {}, ...root } = linked(made)
      for (const [id, definition] of Object.entries($defs)) add(id, definition)
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

export const referenceTo = (name: string): Reference => ({ $ref: `#/components/schemas/${name}` })

const isReference = (schema: JsonSchema): schema is Reference => schema.$ref !== undefined

/** The name of a component, of that of an operation. */
export const capital = (name: string): string => `${name.charAt(0).toUpperCase()}${name.slice(1)}`

/** The name of the component that is referred to. */
export const nameOf = ({ $ref }: Reference): string => $ref.slice($ref.lastIndexOf('/') + 1)

/**
 * Fields may be added to answers, so clients must not forbid them, and words to what is said to be open, so it is text; a
 * date-time needs no pattern beside its format; a field that must not be there is not described.
 */
function tidy(zodSchema: z.core.$ZodTypes, schema: Record<string, unknown>) {
  tidyNull(schema)
  if (schema['additionalProperties'] === false) delete schema['additionalProperties']
  if (schema['format'] === 'date-time') delete schema['pattern']
  const { properties = {} } = schema as { properties?: Record<string, object> }
  for (const [name, property] of Object.entries(properties)) if ('not' in property) delete properties[name]
  tidyChoices(zodSchema, schema)
  if (!('example' in schema)) return
  schema['examples'] = [schema['example']]
  delete schema['example']
}

/**
 * What may be null says so in its type: of a choice with null, what makes OpenAPI 3.0 of a description leaves a value that is always
 * there. What refers to a component has no type, so its choice stays.
 */
function tidyNull(schema: Record<string, unknown>) {
  const { anyOf: choices = [] } = schema as { anyOf?: JsonSchema[] }
  const [choice, other] = choices
  if (choices.length !== 2 || typeof choice?.type !== 'string' || other?.type !== 'null') return
  if ('enum' in choice || 'const' in choice) return
  delete schema['anyOf']
  Object.assign(schema, { ...choice, ...schema, type: [choice.type, 'null'] })
}

/** A choice of one is none; one between objects says by which field they differ. */
function tidyChoices(zodSchema: z.core.$ZodTypes, schema: Record<string, unknown>) {
  const { oneOf: choices } = schema as { oneOf?: Reference[] }
  if (choices?.length === 1) {
    delete schema['oneOf']
    Object.assign(schema, choices[0])
    return
  }
  if (!choices || !(zodSchema instanceof z.ZodDiscriminatedUnion)) return
  const { discriminator: propertyName, options } = zodSchema.def
  const values = options.map((option) => [...(option._zod.propValues?.[propertyName] ?? [])].map(String))
  const mapping = values.flatMap((words, n) => words.map((word) => [word, choices[n]?.$ref]))
  schema['discriminator'] = { propertyName, mapping: Object.fromEntries(mapping) }
}

const codes = [...new Set(Object.values(failures).map(({ code }) => code))]
const types = [...new Set(Object.values(failures).map(({ type }) => type))]

/** The error envelope, with every code that there is. */
export const errorSchemas = {
  ErrorType: { type: 'string', description: 'What kind of failure it is.', enum: types },
  ErrorCode: {
    type: 'string',
    description: 'What went wrong, for programs. Codes may be added: treat one that you do not know by its status.',
    'x-extensible-enum': codes,
  },
  ApiError: {
    type: 'object',
    required: ['type', 'code', 'message', 'request_id'],
    properties: {
      type: referenceTo('ErrorType'),
      code: referenceTo('ErrorCode'),
      message: { type: 'string', description: 'What went wrong, for people. May change.' },
      param: { type: 'string', description: 'The offending field, such as `action.buttons[1].reply.title`.' },
      request_id: { type: 'string', description: 'To be quoted in support requests.' },
    },
  },
  ErrorResponse: { type: 'object', required: ['error'], properties: { error: referenceTo('ApiError') } },
}
