import { call, systemCaller } from '@app/shared/bus/ask.ts'
import type { Rpc } from '@app/shared/api/contract.ts'
import { newId } from '@app/shared/values/ids.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { type AdminCall, helpFor, readArguments } from './admin-arguments.ts'
import { runAndEnd, sentenceOf } from './command.ts'
import { explain } from './explain.ts'
import { countSecrets, resealSecrets } from './secrets.ts'
import { type Bus, withBus } from './stack/bus.ts'
import { dataDirOf } from './stack/options.ts'
import { readBusPlace } from './stack/stack-file.ts'

// What the public API leaves to an operator: `npm run admin -- organization create --name Acme`. One JSON object out.

/** Connecting a number asks the upstream platform, which may take its 15 s. */
const timeoutMs = 25_000
/** What all services are asked: to publish the events of days again. */
const redriveTimeoutMs = 600_000

async function main(args: string[]) {
  const help = helpFor(args)
  if (help !== null) return console.log(help)
  const requestId = newId('req')
  try {
    console.log(JSON.stringify(await answerTo(args, requestId)))
  } catch (err) {
    console.log(JSON.stringify({ error: errorOf(err, requestId) }))
    process.exitCode = 1
  }
}

/** Commands of more than one question, and all others. */
function answerTo(args: string[], requestId: string): Promise<unknown> {
  const [word, id] = args
  if (word === 'explain' && id !== undefined && args.length === 2) {
    return onBus((bus) => explain(bus, id, systemCaller('', requestId)))
  }
  switch (args.join(' ')) {
    case 'secrets count':
      return onBus((bus) => countSecrets(bus, requestId))
    case 'secrets reseal':
      return onBus((bus) => resealSecrets(bus, requestId, (line) => console.error(line)))
    default:
      return run(readArguments(args), requestId)
  }
}

const run = ({ contract, others, body }: AdminCall, requestId: string) =>
  onBus(async (bus) => {
    const ask = (asked: Rpc, waitMs: number) =>
      call(bus, asked, { body }, systemCaller('', requestId), { timeoutMs: waitMs })
    if (others.length === 0) return ask(contract, timeoutMs)
    return { data: await Promise.all([contract, ...others].map((asked) => ask(asked, redriveTimeoutMs))) }
  })

function onBus(work: (bus: Bus) => Promise<unknown>) {
  const dataDir = dataDirOf(process.env)
  const { NATS_URL: natsUrl, NATS_NKEY_SEED: natsSeed } = process.env
  const place = natsUrl ? { natsUrl, natsSeed: natsSeed || undefined } : readBusPlace(dataDir)
  if (!place) {
    throw new Error(
      `No stack runs in ${dataDir}. Start it (npm start), or set SVC_DATA_DIR or NATS_URL to another one.`,
    )
  }
  return withBus(place, work)
}

function errorOf(err: unknown, requestId: string) {
  if (err instanceof Problem) return err.toEnvelope(requestId).error
  return { type: 'invalid_request_error', code: 'command_failed', message: sentenceOf(err), request_id: requestId }
}

await runAndEnd(() => main(process.argv.slice(2)))
