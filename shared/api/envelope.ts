import type { Page, Rpc } from './contract.ts'

/** The answer's bytes, as the client gets them: what the contract does not name is stripped, and `request_id` stands at the end. */
export function envelopeOf(contract: Rpc, answer: object, requestId: string): Buffer {
  if (!contract.list) {
    return Buffer.from(JSON.stringify({ data: contract.answer.parse(answer), request_id: requestId }))
  }
  const { data, has_more, next_cursor } = answer as Page<unknown>
  const items = data.map((item) => contract.answer.parse(item))
  return Buffer.from(JSON.stringify({ data: items, has_more, next_cursor, request_id: requestId }))
}
