import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { newId } from '@app/shared/values/ids.ts'
import { type FailureName, failures, Problem } from '@app/shared/api/problem.ts'
import type { Logger } from 'pino'
import { mostLines, sparingly } from './sparingly.ts'

type ClientError = Error & { code?: string }

/**
 * What the parser of HTTP refused before there was a request: an envelope, when one can still be written, and the end of the
 * connection. Its path is not known, so it is told of in the log, and not in the API log.
 */
export function answersClientErrors(log: Logger): (err: ClientError, socket: Answering) => void {
  const tell = sparingly(mostLines, (...line) => log.info(...line))
  return (err, socket) => answerClientError(tell, err, socket)
}

function answerClientError(tell: ReturnType<typeof sparingly>, err: ClientError, socket: Answering) {
  const answer = socket._httpMessage
  // It stands behind a request that came whole: that is done, and its own answer is the last here.
  if (socket.writable && answer?.req.complete && !answer.headersSent) {
    socket.pause()
    answer.once('finish', () => socket.destroy())
    return
  }
  // Its peer is gone, or an answer was written already, to a request whose body still hangs.
  const isAnswered = err.code === timedOut ? socket.bytesWritten > 0 : answer?.headersSent
  if (err.code === 'ECONNRESET' || !socket.writable || isAnswered) {
    socket.destroy()
    return
  }
  const requestId = newId('req')
  const problem = problemOf(err.code)
  const body = JSON.stringify(problem.toEnvelope(requestId))
  const { status } = failures[problem.failure]
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  tell({ request: requestId, status, problem: problem.failure, why: err.code }, 'http')
}

function problemOf(code = '') {
  const failure = known[code]
  return failure
    ? new Problem(failure)
    : new Problem('invalid_field_value', { message: 'The request is not valid HTTP/1.1.' })
}

const timedOut = 'ERR_HTTP_REQUEST_TIMEOUT'
const known: Record<string, FailureName> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  [timedOut]: 'request_timeout',
}

/** Node keeps the answer under way at its socket. */
type Answering = Socket & { _httpMessage?: ServerResponse | null }
