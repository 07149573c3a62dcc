import { type Authenticator, jwtAuthenticator, nkeyAuthenticator, nkeys } from 'nats'

/** A file of credentials, as `nsc` makes it for a server in operator mode: what the operator has signed, and the user's seed. */
const credentials = /BEGIN NATS USER JWT-+\s+(\S+)\s[^]*BEGIN USER NKEY SEED-+\s+(\S+)/

/** The seed that somebody logs in with, and the user's JWT where the secret is a file of credentials. */
function partsOf(secret: string) {
  const [, jwt, seed] = credentials.exec(secret) ?? []
  return { jwt, seed: seed ?? secret }
}

/** Proves to a nats-server who we are. The secret is a user's seed, or the text of its file of credentials. */
export function authenticatorOf(secret: string): Authenticator {
  const { jwt, seed } = partsOf(secret)
  const bytes = Buffer.from(seed)
  return jwt === undefined ? nkeyAuthenticator(bytes) : jwtAuthenticator(jwt, bytes)
}

/** Checked before it is used: at a wrong one the client throws where nobody catches it. */
export function isLogin(secret: string): boolean {
  const { seed } = partsOf(secret)
  try {
    return seed.startsWith('SU') && nkeys.fromSeed(Buffer.from(seed)).getPublicKey() !== ''
  } catch {
    return false
  }
}
