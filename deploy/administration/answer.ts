import type { Rpc } from '@app/shared/api/contract.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { call, systemCaller, wasNobodyThere } from '@app/shared/bus/ask.ts'
import { patiently } from '../patiently.ts'
import type { Bus } from '../stack/bus.ts'
import { type AdminCall, readArguments } from './arguments.ts'
import { commands } from './commands.ts'
import { explain } from './explain.ts'
import { countSecrets, resealSecrets } from './secrets.ts'

/** Connecting a number asks the upstream platform, which may take its 15 s. */
const timeoutMs = 25_000
/** What all services are asked: to publish the events of days again. */
const redriveTimeoutMs = 600_000

/**
 * What a command of the operator answers: one JSON object. Throws a sentence about what is unknown or missing, or the
 * `Problem` of the service that was asked. `connected` connects for as long as the work takes, once the command is known.
 */
export function answerCommand(
  args: string[],
  requestId: string,
  connected: (work: (bus: Bus) => Promise<unknown>) => Promise<unknown>,
): Promise<unknown> {
  return connected(workOf(args, requestId)).catch((err: unknown) => {
    throw err instanceof Problem ? forOperator(err, requestId) : err
  })
}

/** A client is not told why there is no answer, or which log says so; who has to look after it is. */
function forOperator(problem: Problem, requestId: string) {
  const { failure, cause } = problem
  if (failure !== 'service_unavailable') return problem
  const why = cause instanceof Error ? cause.message : `the logs of the services say why, where they name ${requestId}`
  return new Problem(failure, { message: `Not available at the moment: ${why}.`, cause: problem })
}

/** Which id is unknown. What another organization has is not there for a question about this one. */
function naming(problem: Problem, body: AdminCall['body']) {
  const { failure, param } = problem
  if (failure !== 'resource_not_found' || !param) return problem
  const isOfOne = param !== 'organization_id' && body['organization_id'] !== undefined
  const message = `Nothing${isOfOne ? ' of this organization' : ''} has this ${param}.`
  return new Problem(failure, { param, message, cause: problem })
}

/** What a service says of a field, said of the option that was typed. */
function asTyped(problem: Problem, args: string[]) {
  const { failure, param = '', message } = problem
  const options = Object.entries(commands[args.slice(0, 2).join(' ')]?.options ?? {})
  const [option] = options.find(([, { field }]) => field === param.replace(/\[\d+\]$/, '')) ?? []
  if (option === undefined || !message.startsWith(param)) return problem
  return new Problem(failure, { param, message: `--${option}${message.slice(param.length)}`, cause: problem })
}

/** Commands of more than one question, and all others. */
function workOf(args: string[], requestId: string): (bus: Bus) => Promise<unknown> {
  const [word, ...rest] = args
  if (word === 'explain') return explain(rest, requestId)
  switch (args.join(' ')) {
    case 'secrets count':
      return (bus) => countSecrets(bus, requestId)
    case 'secrets reseal':
      return (bus) => resealSecrets(bus, requestId, (line) => console.error(line))
    default: {
      const asked = readArguments(args)
      return (bus) =>
        run(bus, asked, requestId).catch((err: unknown) => {
          throw err instanceof Problem ? asTyped(naming(err, asked.body), args) : err
        })
    }
  }
}

async function run(bus: Bus, { contract, others, body }: AdminCall, requestId: string) {
  const askOnce = (asked: Rpc, waitMs: number) =>
    call(bus, asked, { body }, systemCaller('', requestId), { timeoutMs: waitMs })
  const ask = (asked: Rpc, waitMs: number) => patiently(() => askOnce(asked, waitMs), tellWhoIsMissing(asked))
  if (others.length === 0) return ask(contract, timeoutMs)
  return { data: await Promise.all([contract, ...others].map((asked) => ask(asked, redriveTimeoutMs))) }
}

/** An installation that was just started, or is replaced, has its services some seconds later. */
function tellWhoIsMissing({ subject }: Rpc) {
  let isTold = false
  return (err: unknown) => {
    if (!wasNobodyThere(err)) return false
    if (!isTold) console.error(`Nobody answers to ${subject} yet; asking for half a minute …`)
    isTold = true
    return true
  }
}
