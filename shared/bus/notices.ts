import type { z } from 'zod'
import type { Notice } from '../api/contract.ts'
import type { Service } from '../service/service.ts'

/**
 * Says it to all that hear it. From the connection of the answers: whoever acts on an answer that was given after it finds it
 * heard, as long as both went through one nats-server.
 */
export function tell<N extends Notice>(
  { nc, isConnected }: Pick<Service, 'nc' | 'isConnected'>,
  { subject, data }: N,
  said: z.input<N['data']>,
): void {
  if (isConnected()) nc.publish(subject, JSON.stringify(data.parse(said)))
}

/** Every instance that hears is told, until its connection ends. */
export function hear<N extends Notice>(
  { nc, log }: Pick<Service, 'nc' | 'log'>,
  { subject, data }: N,
  take: (said: z.output<N['data']>) => void,
): void {
  nc.subscribe(subject, {
    callback(err, message) {
      try {
        if (err) throw err
        take(data.parse(message.json()) as z.output<N['data']>)
      } catch (cause) {
        log.warn({ err: cause, subject }, 'a notice cannot be handled')
      }
    },
  })
}
