import type { Http, Rpc } from '@app/shared/api/contract.ts'
import { failuresOf } from './failures.ts'
import { parametersOf } from './parameters.ts'
import { notModified, refusalsOf, successOf } from './responses.ts'
import type { Schemas } from './schemas.ts'

/** One endpoint, as OpenAPI has it. */
export function operationOf(name: string, contract: Rpc, http: Http, schemas: Schemas): object {
  const { summary, description, answer, list, example } = contract
  const { status = 200, otherStatus, etag = false, method, tag } = http
  const parameters = parametersOf(contract, http, schemas)
  const schema = schemas.of(answer, 'output')
  const success = (as: number) => successOf(as, schema, list, { mayReplay: method === 'POST', etag }, example?.answer)
  return {
    operationId: name,
    summary,
    description: description ?? `${summary}.`,
    tags: [tag],
    ...(parameters.length > 0 && { parameters }),
    ...(http.takesFile ? formBody : bodyOf(contract, schemas)),
    responses: {
      [status]: success(status),
      ...(otherStatus && { [otherStatus]: success(otherStatus) }),
      ...(etag && { 304: notModified }),
      ...refusalsOf(failuresOf(contract, http)),
    },
  }
}

const formBody = {
  requestBody: {
    required: true,
    content: {
      'multipart/form-data': {
        schema: {
          type: 'object',
          properties: {
            file: { type: 'string', format: 'binary', description: 'The file, with its name and `Content-Type`.' },
            type: { type: 'string', description: 'Its type, when the part does not say it; stands before the file.' },
          },
          required: ['file'],
        },
      },
    },
  },
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
