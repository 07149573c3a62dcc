import type { Rpc } from '@app/shared/api/contract.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { type Answered, call, systemCaller } from '@app/shared/bus/ask.ts'
import type { z } from 'zod'
import type { Bus } from '../stack/bus.ts'

/** Asks the services what they know. One that is away is no reason not to tell what the others know. */
export interface Asking {
  /** Null, with a line in `unanswered`, when the service did not answer. */
  ask: <C extends Rpc>(contract: C, body: z.input<C['body']>) => Promise<Answered<C> | null>
  /** Who did not answer and why, by the words for it. */
  unanswered: Map<string, Problem>
}

export function askingOf(bus: Bus, requestId: string): Asking {
  const unanswered: Asking['unanswered'] = new Map()
  const caller = systemCaller('', requestId)
  return {
    unanswered,
    async ask(contract, body) {
      try {
        return await call(bus, contract, { body }, caller)
      } catch (err) {
        if (!(err instanceof Problem && err.status >= 500)) throw err
        unanswered.set(reasonOf(err, contract, requestId), err)
        return null
      }
    },
  }
}

const reasonOf = ({ cause, message }: Problem, { subject }: Rpc, requestId: string) =>
  cause instanceof Error ? cause.message : `${subject}: ${message} Its log says why, where it names ${requestId}.`

/** Null for what is not there. */
export async function orNull<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked
  } catch (err) {
    if (err instanceof Problem && err.status === 404) return null
    throw err
  }
}
