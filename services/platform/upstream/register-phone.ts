import { Problem } from '@app/shared/api/problem.ts'
import type { Upstream } from '@app/shared/outside/upstream.ts'
import { z } from 'zod'
import { askUpstream } from './ask-upstream.ts'
import { upstreamErrorOf } from './refusals.ts'

interface Registration {
  phoneNumberId: string
  token: string
  pin: string
  region: string | undefined
}

/** The PIN is wrong; the number has to be verified again. */
const refused = new Set([133005, 133006])
/** Tried too often, and how many seconds to wait: too many wrong PINs, too fast, just deleted, 10 calls in 72 hours. */
const tooOften: ReadonlyMap<number, number> = new Map([
  [133008, 3_600],
  [133009, 60],
  [133015, 300],
  [133016, 72 * 3_600],
])

/** Registers a number with its PIN; where it has none, this one becomes it. */
export async function registerPhone(
  upstream: Upstream,
  { phoneNumberId, token, pin, region }: Registration,
  deadline: number,
): Promise<void> {
  const body = {
    messaging_product: 'whatsapp',
    pin,
    ...(region !== undefined && { data_localization_region: region }),
  }
  const answer = z.object({ success: z.literal(true) })
  const path = `/${phoneNumberId}/register`
  try {
    await askUpstream(upstream, { method: 'POST', path, token, json: body, answer, param: 'phone_number_id' }, deadline)
  } catch (err) {
    throw registrationProblem(err)
  }
}

/** What the platform's refusal means for who asked to register the number. */
export function registrationProblem(err: unknown) {
  if (!(err instanceof Problem)) return err
  // The token is none of the request's fields: it was given when the number was connected.
  if (err.param === 'access_token') return new Problem(err.failure, { message: err.message, cause: err.cause })
  const upstream = upstreamErrorOf(err)
  if (!upstream) return err
  const { code } = upstream
  const details = { message: err.message, cause: upstream }
  if (refused.has(code)) return new Problem('registration_failed', { ...details, param: paramOf(code) })
  const retryAfterSeconds = tooOften.get(code)
  if (retryAfterSeconds === undefined) return err
  return new Problem('rate_limit_exceeded', { ...details, retryAfterSeconds })
}

const paramOf = (code: number) => (code === 133005 ? 'pin' : undefined)
