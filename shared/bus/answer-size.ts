import type { Input, Page, Rpc } from '../api/contract.ts'
import { Problem } from '../api/problem.ts'
import type { Service } from '../service/service.ts'

/** Of the headers of an answer. */
const headerBytes = 4 * 1024

const mostBytes = ({ nc }: Pick<Service, 'nc'>) => (nc.info?.max_payload ?? Infinity) - headerBytes

const hasPages = ({ list, query: { shape } }: Rpc) => list && 'limit' in shape

/**
 * The same question for as many items as fit, when the bus would not take the page that was asked for: its cursor leads to the others. Null
 * when the answer fits, or cannot be shorter.
 */
export function shorterPage(
  service: Pick<Service, 'nc'>,
  contract: Rpc,
  input: Input<Rpc>,
  { result, body }: { result: object; body: Uint8Array },
): Input<Rpc> | null {
  const most = mostBytes(service)
  if (body.length <= most || !hasPages(contract)) return null
  const { data } = result as Page<unknown>
  if (data.length === 1) return null
  const fitting = countFitting(contract, data, most - frameBytes)
  return { ...input, query: { ...input.query, limit: String(Math.max(fitting, 1)) } }
}

/** Of what stands around the items of a page. */
const frameBytes = 4 * 1024

/** Of items that are too many. */
function countFitting({ answer }: Rpc, items: unknown[], most: number) {
  let bytes = 0
  const firstTooMany = items.findIndex((item) => {
    bytes += Buffer.byteLength(JSON.stringify(answer.parse(item))) + 1
    return bytes > most
  })
  return firstTooMany === -1 ? items.length - 1 : firstTooMany
}

/** The client would throw where nobody catches it. */
export function refuseTooLarge(service: Pick<Service, 'nc'>, contract: Rpc, { length }: Uint8Array) {
  const most = mostBytes(service)
  if (length <= most) return
  throw new Problem('internal_error', {
    message:
      contract.list && !hasPages(contract)
        ? `The answer is too large: ask for fewer items with ${filtersOf(contract)}.`
        : undefined,
    cause: new Error(`an answer of ${length} bytes, and the bus takes ${most}`),
  })
}

/** A list without pages is made shorter by what it may be filtered by. */
const filtersOf = ({ query }: Rpc) =>
  Object.keys(query.shape)
    .map((name) => `\`${name}\``)
    .join(' or ')
