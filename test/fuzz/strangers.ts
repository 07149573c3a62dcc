import { fill, type Operation, prefixOf } from './document.ts'
import { pathsOf, type World } from './world.ts'

/** A path that is nobody's business, and why. */
interface Closed {
  why: string
  path: string
}

const ulid = '01JQ8Z6V0A7XJ2N5T9WQ3RBKCD'

/** An id of that kind which never was. */
export const neverWas = (prefix: string | null, name = ''): string => {
  if (prefix !== null) return `${prefix}_${ulid}`
  return name === 'phone_number_id' ? '99999999999' : 'no_such_template'
}

/** Already encoded. */
const malformed = ['nonsense', '%00', '%', '%ff', '1', '%20', '-', '12345678901234567890123', 'undefined', '%5B%5D']

/**
 * Every way to ask for what is not there for the organization: another's, another account's, another parent's, deleted,
 * never there, malformed; one parameter at a time, the others are right.
 */
export function closedPathsOf(
  operation: Operation,
  own: World,
  other: World,
  deleted: Record<string, string>,
): Closed[] {
  const { path, pathParameters } = operation
  const [names = {}] = pathsOf(own, operation)
  const [theirs = {}] = pathsOf(other, operation)
  const withOne = (name: string, value: string) => fill(path, { ...names, [name]: value })
  return pathParameters.flatMap(({ name, schema }) => {
    const prefix = prefixOf(schema)
    const gone = deleted[prefix ?? '']
    const closed: Closed[] = [
      { why: `${name} of another organization`, path: withOne(name, theirs[name] ?? '') },
      { why: `${name} that never was`, path: withOne(name, neverWas(prefix, name)) },
      ...malformed.map((segment) => ({
        why: `${name} ${segment}`,
        path: fill(path.replace(`{${name}}`, '\n'), names).replace('\n', segment),
      })),
    ]
    if (gone !== undefined) closed.push({ why: `${name} that is deleted`, path: withOne(name, gone) })
    if (prefix) closed.push({ why: `${name} in lower case`, path: withOne(name, (names[name] ?? '').toLowerCase()) })
    const parent = otherParentOf(operation, name, own)
    if (parent !== null) closed.push({ why: `${name} that is not its parent`, path: withOne(name, parent) })
    return closed
  })
}

/** Of the same organization, and not the parent of what the rest of the path names; null where there is no such thing. */
function otherParentOf(
  { path, pathParameters }: Operation,
  name: string,
  { otherPhone, links, secrets, spare }: World,
) {
  if (pathParameters.length < 2 || name !== pathParameters[0]?.name) return null
  if (name === 'phone_number_id') return otherPhone
  if (path.includes('{link_id}')) return links[1]?.id ?? null
  if (path.includes('{secret_id}')) return secrets[1]?.id ?? null
  return spare[1]?.id ?? null
}
