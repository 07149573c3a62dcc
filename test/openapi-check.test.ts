import { expect, test } from 'vitest'
import { checkAnswer } from './journeys/openapi-check.ts'

const refusal = (type: string, code: string) => ({
  error: { type, code, message: 'No.', request_id: 'req_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD' },
})
const send = (status: number, type: string, code: string) => () =>
  checkAnswer('POST', '/106540352242922/messages', status, refusal(type, code))

test('a failure has a status and a code that its operation lists', () => {
  expect(send(422, 'invalid_request_error', 'template_paused')).not.toThrow()
  expect(send(404, 'not_found', 'resource_not_found')).not.toThrow()
  expect(send(422, 'invalid_request_error', 'registration_failed')).toThrow('does not list registration_failed')
  expect(send(400, 'invalid_request_error', 'invalid_limit')).toThrow('does not list invalid_limit')
  expect(send(418, 'invalid_request_error', 'invalid_limit')).toThrow('answered 418')
})
