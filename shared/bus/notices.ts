import { randomUUID } from 'node:crypto'
import { headers, type Msg } from 'nats'
import type { z } from 'zod'
import type { Notice } from '../api/contract.ts'
import type { Service } from '../service/service.ts'
import { beatMs, createTellers, type Tellers, type Told } from './tellers.ts'

const header = 'Svc-Told'

export interface Telling<N extends Notice> {
  /**
   * Says it to all that hear it. From the connection of the answers: whoever acts on an answer that was given after it finds it
   * heard, as long as both went through one nats-server.
   */
  tell: (said: z.input<N['data']>) => void
  /** After the last change that is to be told. */
  stop: () => void
}

/** Numbers what an instance tells and says something every 2 s, so that whoever hears it knows whether anything is missing. */
export function startTelling<N extends Notice>(
  { nc, isConnected }: Pick<Service, 'nc' | 'isConnected'>,
  { subject, data, nothing }: N,
): Telling<N> {
  const teller = randomUUID()
  let number = 0
  const say = (said: unknown, isLast = false) => {
    number++
    if (!isConnected()) return
    const carrier = headers()
    carrier.set(header, JSON.stringify({ teller, number, isLast } satisfies Told))
    nc.publish(subject, JSON.stringify(data.parse(said)), { headers: carrier })
  }
  say(nothing)
  const beat = setInterval(() => say(nothing), beatMs)
  return {
    tell: (said) => say(said),
    stop() {
      clearInterval(beat)
      say(nothing, true)
    },
  }
}

/** Every instance that hears is told, until its connection ends. */
export function hear<N extends Notice>(
  { nc, log }: Pick<Service, 'nc' | 'log'>,
  { subject, data }: N,
  take: (said: z.output<N['data']>) => void,
): Pick<Tellers, 'wholeSince'> {
  const tellers = createTellers()
  nc.subscribe(subject, {
    callback(err, message) {
      try {
        if (err) throw err
        take(data.parse(message.json()) as z.output<N['data']>)
        tellers.heard(toldBy(message))
      } catch (cause) {
        tellers.missed()
        log.warn({ err: cause, subject }, 'a notice cannot be handled')
      }
    },
  })
  return tellers
}

function toldBy(message: Msg): Told {
  const told = message.headers?.get(header)
  if (!told) throw new Error(`a notice without the header ${header}`)
  return JSON.parse(told) as Told
}
