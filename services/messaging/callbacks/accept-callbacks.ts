import type { Handler } from '@app/shared/api/contract.ts'
import type { acceptCallbacks as contract } from '@app/shared/contracts/messaging.ts'
import { unpack } from '@app/shared/values/packed.ts'
import type { App } from '../app.ts'
import { keepCallback } from './accept-callback.ts'

/** Keeps callbacks that came at the same time. One that cannot be kept is answered so, and takes none of the others with it. */
export const acceptCallbacks: Handler<App, typeof contract> = async (app, { body }, { deadline }) => {
  const results = await Promise.allSettled(unpack(body).map((bytes) => keepCallback(app, bytes, deadline)))
  const failures = results.filter((result) => result.status === 'rejected')
  // What befell all of them is told as the question's own failure.
  if (failures.length === results.length && failures[0]) throw failures[0].reason
  for (const { reason } of failures) app.log.error({ err: reason }, 'a callback cannot be kept')
  return { accepted: results.map(({ status }) => status === 'fulfilled') }
}
