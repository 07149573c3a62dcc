import type { Operation } from './document.ts'

/** A request, and what is known of its answer beforehand. */
export interface Request {
  operation: Operation
  what: string
  /** Below `/v1`. */
  path: string
  headers: Record<string, string>
  body: Buffer | null
  expected: Expected
}

interface Expected {
  /** Its schemas take it. */
  isValid?: boolean
  /** Any that the OpenAPI lists, unless told otherwise. */
  status?: number
  /** What `param` must name. */
  param?: string
}

/** A request as a person reads it. */
export const shown = ({ operation, what, path, headers, body }: Request): string =>
  JSON.stringify({ operation: operation.name, what, path: path.slice(0, 500), headers: { ...headers, ...(headers['x-large'] && { 'x-large': '…' }) }, body: body?.toString().slice(0, 2_000) }) // prettier-ignore
