import { ErrorCode, NatsError } from 'nats'
import type { Registry } from 'prom-client'
import type { Request } from '../bus/requests.ts'
import { durations } from './registered.ts'

const isQuestion = (subject: string) => subject.startsWith('rpc.')

function wordOf(err: unknown) {
  if (!(err instanceof NatsError)) return 'error'
  return err.code === ErrorCode.NoResponders ? 'no_responders' : err.code.toLowerCase()
}

/** Measures what is asked of other services; a publish to the stream is none of that. */
export function timeQuestions(request: Request, registry: Registry): Request {
  const asked = durations(registry, {
    name: 'svc_rpc_asked_seconds',
    help: 'Questions that this process asked, by subject and outcome: answered (a failure is an answer), or the error of the bus.',
    labelNames: ['subject', 'outcome'],
  })
  return (subject, ...others) => {
    if (!isQuestion(subject)) return request(subject, ...others)
    const startedAt = performance.now()
    const note = (outcome: string) => asked.observe({ subject, outcome }, (performance.now() - startedAt) / 1_000)
    const answer = request(subject, ...others)
    answer.then(
      () => note('answered'),
      (err: unknown) => note(wordOf(err)),
    )
    return answer
  }
}
