import type { Http, Rpc } from '@app/shared/contract.ts'
import { failuresOf } from './failures.ts'
import { parametersOf } from './parameters.ts'
import { refusalsOf, successOf } from './responses.ts'
import type { Schemas } from './schemas.ts'

/** One endpoint, as OpenAPI has it. */
export function operationOf(name: string, contract: Rpc, http: Http, schemas: Schemas): object {
  const { summary, description, answer, list, example } = contract
  const { status = 200, otherStatus, method, tag } = http
  const parameters = parametersOf(contract, http, schemas)
  const successes = [status, ...(otherStatus ? [otherStatus] : [])].map((one) => [
    one,
    successOf(one, schemas.of(answer, 'output'), list, method === 'POST', example?.answer),
  ])
  return {
    operationId: name,
    summary,
    description: description ?? `${summary}.`,
    tags: [tag],
    ...(parameters.length > 0 && { parameters }),
    ...bodyOf(contract, schemas),
    responses: { ...Object.fromEntries(successes), ...refusalsOf(failuresOf(contract, http)) },
  }
}

function bodyOf({ body, example }: Rpc, schemas: Schemas) {
  if (body.type === 'undefined') return {}
  const schema = schemas.of(body, 'input')
  return {
    requestBody: {
      // Without a body an endpoint reads {}.
      required: !body.safeParse({}).success,
      content: { 'application/json': { schema, ...(example?.body !== undefined && { example: example.body }) } },
    },
  }
}
