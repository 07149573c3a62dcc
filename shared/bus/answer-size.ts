import type { Input, Page, Rpc } from '../api/contract.ts'
import { Problem } from '../api/problem.ts'
import type { Service } from '../service/service.ts'

/** Room for the headers of an answer. */
const headerBytes = 4 * 1024

const mostBytes = ({ nc }: Pick<Service, 'nc'>) => (nc.info?.max_payload ?? Infinity) - headerBytes

const hasPages = ({ list, query: { shape } }: Rpc) => list && 'limit' in shape

/**
 * When the bus would not take the page that was asked for: the same question for as many items as fit, whose cursor leads to the
 * others. Null when the answer fits, or cannot be made shorter.
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

/** Room for what stands around the items of a page. */
const frameBytes = 4 * 1024

/** How many of the items fit, where not all of them do. */
function countFitting({ answer }: Rpc, items: unknown[], most: number) {
  let bytes = 0
  const firstTooMany = items.findIndex((item) => {
    bytes += Buffer.byteLength(JSON.stringify(answer.parse(item))) + 1
    return bytes > most
  })
  return firstTooMany === -1 ? items.length - 1 : firstTooMany
}

/** To be called before an answer is sent: the client would throw where nobody catches it. */
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

/** What makes a list without pages shorter. */
const filtersOf = ({ query }: Rpc) =>
  Object.keys(query.shape)
    .map((name) => `\`${name}\``)
    .join(' or ')
