import { z } from 'zod'
import { timeInput } from '../contracts/fields.ts'
import { type Handler, rpc } from '../api/contract.ts'
import type { EventService } from './handled-ranges.ts'
import type { Relay } from './relay.ts'

/** Publishes a service's recorded events again; whoever handled them drops the repeats. For a stream that was lost or restored. */
export const redriveEventsOf = <S extends EventService>(service: S) =>
  rpc({
    subject: `rpc.${service}.redrive-events` as const,
    summary: `Publish the recorded events of ${service} again`,
    body: z.object({ since: timeInput }),
    answer: z.object({ service: z.string(), events: z.int() }),
  })

type Contract = ReturnType<typeof redriveEventsOf>

export const redriveEvents: Handler<{ name: string; relay: Relay }, Contract> = async ({ name, relay }, { body }) => ({
  service: name,
  events: await relay.redrive(new Date(body.since)),
})
