import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { contractModules } from '@app/gateway/contracts.ts'
import { type Event, isEvent, isRpc, type Rpc } from '@app/shared/api/contract.ts'
import { explains } from '@app/shared/contracts/explain.ts'
import { z } from 'zod'
import type { Direction, Schema } from './contract-changes.ts'

export const snapshotFile = join(import.meta.dirname, '../docs/contracts.json')

/** The contracts as they were at the last release, and messages of that time. */
export interface Snapshot {
  /** By subject and part: what a question takes and gives, and what an event gives and takes. */
  contracts: Record<string, Record<string, Schema>>
  /** By subject: the example of a question, or an event as it lay on the stream. */
  messages: Record<string, { body?: unknown; answer?: unknown; event?: unknown }>
}

export const readSnapshot = () => JSON.parse(readFileSync(snapshotFile, 'utf8')) as Snapshot

/** Every contract of now, by its subject. */
export const contractsNow: ReadonlyMap<string, Rpc | Event> = new Map(
  [...Object.values(contractModules), ...Object.values(explains)]
    .flatMap((module): unknown[] => Object.values(module))
    .filter((contract): contract is Rpc | Event => isRpc(contract) || isEvent(contract))
    .map((contract) => [contract.subject, contract] as const)
    .toSorted(([one], [other]) => one.localeCompare(other)),
)

/** A contract's parts. An event is given by one release and taken by another. */
export const partNames = {
  params: 'taken',
  query: 'taken',
  body: 'taken',
  answer: 'given',
  given: 'given',
  taken: 'taken',
} as const satisfies Record<string, Direction>
type PartName = keyof typeof partNames

/** The JSON schemas of a contract's parts. */
export function schemasOf(contract: Rpc | Event): Partial<Record<PartName, Schema>> {
  if (contract.kind === 'event')
    return { given: schemaOf(contract.data, 'given'), taken: schemaOf(contract.data, 'taken') }
  const { params, query, body, answer } = contract
  return {
    params: schemaOf(params, 'taken'),
    query: schemaOf(query, 'taken'),
    body: schemaOf(body, 'taken'),
    answer: schemaOf(answer, 'given'),
  }
}

function schemaOf(schema: z.ZodType, direction: Direction): Schema {
  const io = direction === 'taken' ? 'input' : 'output'
  const { $schema: _, ...made } = z.toJSONSchema(schema, { io, unrepresentable: 'any', override: withoutWords })
  return inlined(made as Schema, (made.$defs ?? {}) as Record<string, Schema>)
}

/** Words change from release to release. */
function withoutWords({ jsonSchema }: { jsonSchema: Record<string, unknown> }) {
  for (const word of ['description', 'title', 'examples', 'id', 'default']) delete jsonSchema[word]
}

/** Without definitions beside it. One that holds itself stays a reference there. */
function inlined(schema: Schema, definitions: Record<string, Schema>, within: string[] = []): Schema {
  const inner = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inner)
    return typeof value === 'object' && value !== null ? inlined(value as Schema, definitions, within) : value
  }
  const { $ref, $defs: _, ...own } = schema
  if (typeof $ref === 'string') {
    const definition = definitions[$ref.replace('#/$defs/', '')]
    return definition && !within.includes($ref) ? inlined(definition, definitions, [...within, $ref]) : { $ref }
  }
  return Object.fromEntries(Object.entries(own).map(([keyword, value]) => [keyword, inner(value)]))
}
