import { Problem } from '@app/shared/api/problem.ts'
import { newId } from '@app/shared/values/ids.ts'
import { answerCommand } from './administration/answer.ts'
import { helpFor } from './administration/arguments.ts'
import { jsonLine } from './administration/json-line.ts'
import { runAndEnd, sentenceOf } from './command.ts'
import { type BusPlace, withBus } from './stack/bus.ts'
import { dataDirOf } from './stack/options.ts'
import { readBusPlace } from './stack/stack-file.ts'

// What the public API leaves to an operator: `npm run admin -- organization create --name Acme`. One JSON object out.

async function main(args: string[]) {
  const help = helpFor(args)
  if (help !== null) return console.log(help)
  const requestId = newId('req')
  try {
    console.log(jsonLine(await answerCommand(args, requestId, (work) => withBus(busPlace(), work))))
  } catch (err) {
    console.log(jsonLine({ error: errorOf(err, requestId) }))
    process.exitCode = 1
  }
}

function busPlace(): BusPlace {
  const dataDir = dataDirOf(process.env)
  const { NATS_URL: natsUrl, NATS_NKEY_SEED: natsSeed } = process.env
  const place = natsUrl ? { natsUrl, natsSeed: natsSeed || undefined } : readBusPlace(dataDir)
  if (!place) {
    throw new Error(
      `No stack runs in ${dataDir}. Start it (npm start), or set SVC_DATA_DIR or NATS_URL to another one.`,
    )
  }
  return place
}

function errorOf(err: unknown, requestId: string) {
  if (err instanceof Problem) return err.toEnvelope(requestId).error
  return { type: 'invalid_request_error', code: 'command_failed', message: sentenceOf(err), request_id: requestId }
}

await runAndEnd(() => main(process.argv.slice(2)))
