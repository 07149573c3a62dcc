import { setTimeout } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { App } from './app.ts'

/**
 * While this runs connections end with their next answer, new ones still have theirs: whoever asks in the meantime learns
 * that this gateway goes away, instead of finding its connection closed.
 */
const farewellMs = 500

/** Ends the HTTP side without a failed request: a farewell, then no new connections, then what is running. */
export async function stopListening(http: FastifyInstance, app: App): Promise<void> {
  app.beginStop()
  await setTimeout(farewellMs)
  await http.close()
}
