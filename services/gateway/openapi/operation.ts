import type { Http, Rpc } from '@app/shared/api/contract.ts'
import { failuresOf } from './failures.ts'
import { parametersOf } from './parameters.ts'
import { envelopeOf, exampleAnswer, notModified, refusalsOf, successOf } from './responses.ts'
import { capital, type Schemas } from './schemas.ts'

/** One endpoint, as OpenAPI has it. */
export function operationOf(name: string, contract: Rpc, http: Http, schemas: Schemas): object {
  const { summary, description, answer, list, example } = contract
  const { status = 200, otherStatus, etag = false, method, tag } = http
  const parameters = parametersOf(contract, http, schemas)
  const resource = schemas.named(componentName(name, 'Result'), schemas.of(answer, 'output'))
  const envelope = envelopeOf(resource, list, schemas)
  const shown = exampleAnswer(example?.answer, list)
  const success = (as: number) => successOf(as, envelope, { mayReplay: method === 'POST', etag }, shown)
  return {
    operationId: name,
    summary,
    description: description ?? `${summary}.`,
    tags: [tag],
    ...(parameters.length > 0 && { parameters }),
    ...bodyOf(name, contract, http, schemas),
    responses: {
      [status]: success(status),
      ...(otherStatus && { [otherStatus]: success(otherStatus) }),
      ...(etag && { 304: notModified }),
      ...refusalsOf(failuresOf(contract, http)),
    },
  }
}

/** `createLabel` → `CreateLabelRequest`. */
const componentName = (name: string, what: 'Request' | 'Result') => `${capital(name)}${what}`

/** Clients write the fields in this order, and the type of a file has to come before it. */
const form = {
  type: 'object',
  properties: {
    type: { type: 'string', description: 'Its type, when the part does not say it; stands before the file.' },
    file: { type: 'string', format: 'binary', description: 'The file, with its name and `Content-Type`.' },
  },
  required: ['file'],
}

function bodyOf(name: string, { body, example }: Rpc, { takesFile = false }: Http, schemas: Schemas) {
  const schemaName = componentName(name, 'Request')
  if (takesFile) {
    const schema = schemas.named(schemaName, form)
    return { requestBody: { required: true, content: { 'multipart/form-data': { schema } } } }
  }
  if (body.type === 'undefined') return {}
  const schema = schemas.named(schemaName, schemas.of(body, 'input'))
  return {
    requestBody: {
      // Without a body an endpoint reads {}.
      required: !body.safeParse({}).success,
      content: { 'application/json': { schema, ...(example?.body !== undefined && { example: example.body }) } },
    },
  }
}
