import { hash } from 'node:crypto'
import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { authenticateKey } from '@app/shared/contracts/platform.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { Service } from '@app/shared/service/service.ts'
import type { App } from '../app.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { type Budget, standingOf } from '../limits/budget.ts'
import { createLookUpTurns } from '../limits/look-up-turns.ts'
import type { RateLimiter } from '../limits/rate-limit.ts'
import { networkOf } from './client-ip.ts'
import { createLookUp, type Known } from './look-up.ts'

/** Whose key it is. */
export interface Identity {
  organizationId: string
  keyId: string
  /** Epoch milliseconds. */
  expiresAt: number
  features: string[]
  /** What GET /me answers, as JSON: its UTF-8 bytes, one character each. */
  me: string
  read: Budget
  write: Budget
}

/** A revocation answers this long after its commit (rpc.platform.revoke-key): what is known from before is too old by then. */
const keptMs = 2_000
/** Beyond this many keys in two seconds, some are looked up more often. */
const maxKeys = 50_000
const failuresPerMinute = 100

type Refusal = 'invalid_api_key' | 'revoked_api_key' | 'expired_api_key'

export interface Keys {
  /** Throws when the platform service does not answer. */
  find: (
    key: string,
    asker: Pick<Exchange, 'requestId' | 'ip'>,
  ) => Known<Identity | Refusal> | Promise<Known<Identity | Refusal>>
}

export function createKeys(service: Pick<Service, 'request' | 'isConnected'>, limiter: RateLimiter): Keys {
  const keys = createLookUp<Identity | Refusal>({ max: maxKeys })
  const inTurn = createLookUpTurns()

  async function ask(key: string, requestId: string, deadline: number): Promise<Identity | Refusal> {
    const body = { key_hash: hash('sha256', key) }
    const caller = { ...systemCaller('', requestId), deadline }
    const found = await call(service, authenticateKey, { body }, caller, { timeoutMs: keptMs })
    const { state, key_id: keyId, organization_id: organizationId, tier, expires_at: expiresAt, features, me } = found
    if (state === 'revoked') return 'revoked_api_key'
    if (state === 'expired') return 'expired_api_key'
    if (state !== 'valid' || !keyId || !organizationId || !tier || !me) return 'invalid_api_key'
    return {
      organizationId,
      keyId,
      expiresAt: expiresAt === null ? Infinity : Date.parse(expiresAt),
      features,
      me: Buffer.from(JSON.stringify(me)).toString('latin1'),
      read: limiter.budget(`rate:${keyId}:read`, tier.read_per_minute),
      write: limiter.budget(`rate:${keyId}:write`, tier.write_per_minute),
    }
  }

  return {
    find: (key, { requestId, ip }) =>
      keys.get(key, async (before) => {
        const deadline = performance.now() + keptMs
        const look = () => ask(key, requestId, deadline)
        // A key that was valid when it was last looked up waits for no stranger.
        const value = await (typeof before === 'object' ? look() : inTurn(networkOf(ip), deadline, look))
        return { value, keptMs }
      }),
  }
}

/** The scheme in any case; the key as it was issued. Two headers arrive as one with a comma, and fail. */
const bearer = /^[Bb][Ee][Aa][Rr][Ee][Rr] +(svc_live_[A-Za-z0-9_-]{24})$/

function keyOf(authorization: string | undefined) {
  if (authorization === undefined) throw new Problem('missing_api_key')
  const key = bearer.exec(authorization)?.[1]
  if (key === undefined) throw new Problem('invalid_api_key')
  return key
}

/**
 * Who sends a request, by its bearer key alone (public API, section 5): at once when the key was looked up less than 2 s
 * ago. Throws the 401, or 429 for an address that failed too often; a valid key is never refused for its address.
 */
export function authenticate(app: App, exchange: Exchange): Known<Identity> | Promise<Known<Identity>> {
  try {
    const key = keyOf(exchange.request.headers.authorization)
    const found = app.keys.find(key, exchange)
    if (!(found instanceof Promise)) return accepted(found)
    return found.then(accepted).catch((err: unknown) => refuse(app, exchange, err))
  } catch (err) {
    return refuse(app, exchange, err)
  }
}

function accepted(known: Known<Identity | Refusal>): Known<Identity> {
  if (!isIdentity(known)) throw new Problem(known.value as Refusal)
  if (known.value.expiresAt <= Date.now()) throw new Problem('expired_api_key')
  return known
}

const isIdentity = (known: Known<Identity | Refusal>): known is Known<Identity> => typeof known.value === 'object'

async function refuse({ limiter }: App, { ip }: Exchange, err: unknown): Promise<never> {
  if (!(err instanceof Problem) || err.status !== 401) throw err
  const budget = limiter.budget(`failed:${networkOf(ip)}`, failuresPerMinute)
  if (await limiter.take(budget)) throw err
  throw new Problem('rate_limit_exceeded', {
    message: 'Too many requests without a valid API key.',
    retryAfterSeconds: standingOf(budget).tokenInSeconds,
  })
}
