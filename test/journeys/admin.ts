import { answerCommand } from '@app/deploy/administration/answer.ts'
import { type Bus, openBus, withBus } from '@app/deploy/stack/bus.ts'
import { readBusPlace } from '@app/deploy/stack/stack-file.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { newId } from '@app/shared/values/ids.ts'
import { inject } from 'vitest'
import type { Json } from './client.ts'

type Connected = Parameters<typeof answerCommand>[2]

let opened: Promise<Bus> | undefined

const openedBus = () =>
  (opened ??= openBus(placeOf(inject('stackDir'))).catch((err: unknown) => {
    opened = undefined
    throw err
  }))

/**
 * What `npm run admin -- …` answers of the stack of the run. A process, or a connection, for each of hundreds would cost more than all
 * that they do.
 */
export const admin = (...args: string[]): Promise<Json> => answerOf(args, async (work) => work(await openedBus()))

/** The same of the stack of a data folder, which may be another one when it is asked again. */
export const adminOf =
  (dataDir: string) =>
  (...args: string[]): Promise<Json> =>
    answerOf(args, (work) => withBus(placeOf(dataDir), work))

async function answerOf(args: string[], connected: Connected): Promise<Json> {
  const requestId = newId('req')
  try {
    return JSON.parse(JSON.stringify(await answerCommand(args, requestId, connected)))
  } catch (err) {
    const told = err instanceof Problem ? JSON.stringify(err.toEnvelope(requestId)) : String(err)
    throw new Error(`admin ${args.join(' ')}: ${told}`, { cause: err })
  }
}

function placeOf(dataDir: string) {
  const place = readBusPlace(dataDir)
  if (!place) throw new Error(`No stack runs in ${dataDir}.`)
  return place
}
