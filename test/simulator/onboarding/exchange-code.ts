import type { App } from '../app.ts'
import { GraphError } from '../graph/graph-error.ts'
import type { Query } from '../graph/nodes.ts'

const refusals = {
  unknown: { message: 'Invalid verification code format.', subcode: 36_008 },
  spent: { message: 'This authorization code has been used.', subcode: 36_009 },
  expired: { message: 'This authorization code has expired.', subcode: 36_007 },
} as const

/** `GET /{v}/oauth/access_token`: a dialog's code for the token that uses the business account. */
export function exchangeCode({ options, codes }: App, query: Query) {
  const { client_id: id, client_secret: secret, code } = query
  if (id !== options.appId)
    throw new GraphError(101, { message: 'Error validating application. Cannot get application info.' })
  if (secret !== options.appSecret) throw new GraphError(1, { message: 'Error validating client secret.' })
  if (!code) throw new GraphError(100, { message: 'Missing authorization code' })
  const spent = codes.spend(code)
  if (typeof spent === 'string') throw new GraphError(100, refusals[spent])
  return { access_token: spent.accessToken, token_type: 'bearer' }
}
