import { call, systemCaller } from '@app/shared/ask.ts'
import type { Rpc } from '@app/shared/contract.ts'
import { newId } from '@app/shared/ids.ts'
import { Problem } from '@app/shared/problem.ts'
import { type AdminCall, readArguments } from './admin-arguments.ts'
import { sentenceOf } from './command.ts'
import { explain } from './explain.ts'
import { type Bus, withBus } from './stack/bus.ts'
import { dataDirOf } from './stack/options.ts'
import { readBusPlace } from './stack/stack-file.ts'

// What the public API leaves to an operator: `npm run admin -- organization create --name Acme`. One JSON object out.

/** Connecting a number asks the upstream platform, which may take its 15 s. */
const timeoutMs = 25_000

async function main(args: string[]) {
  const requestId = newId('req')
  try {
    const [word, id, ...excess] = args
    const answer = await (word === 'explain' && id !== undefined && excess.length === 0
      ? onBus((bus) => explain(bus, id, systemCaller('', requestId)))
      : run(readArguments(args), requestId))
    console.log(JSON.stringify(answer))
  } catch (err) {
    console.log(JSON.stringify({ error: errorOf(err, requestId) }))
    process.exitCode = 1
  }
}

const run = ({ contract, others, body }: AdminCall, requestId: string) =>
  onBus(async (bus) => {
    const ask = (asked: Rpc) => call(bus, asked, { body }, systemCaller('', requestId), { timeoutMs })
    if (others.length === 0) return ask(contract)
    return { data: await Promise.all([contract, ...others].map(ask)) }
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

await main(process.argv.slice(2))
