import { createHash } from 'node:crypto'
import { nkeys } from 'nats'
import type { Permissions } from '../nats/permissions.ts'

type KeyPair = ReturnType<typeof nkeys.createUser>

/** The claims of a JWT about `subject`, signed by its issuer, as nsc writes them. */
function signed(by: KeyPair, subject: string, nats: object, exp?: number): string {
  const claims = { iat: Math.floor(Date.now() / 1000), iss: by.getPublicKey(), name: 'test', sub: subject, nats, exp }
  const jti = createHash('sha256').update(JSON.stringify(claims)).digest('hex')
  const encoded = [
    { typ: 'JWT', alg: 'ed25519-nkey' },
    { ...claims, jti },
  ].map((part) => base64(JSON.stringify(part)))
  const text = encoded.join('.')
  return `${text}.${base64(by.sign(Buffer.from(text)))}`
}

const base64 = (bytes: string | Uint8Array) => Buffer.from(bytes).toString('base64url')
const unlimited = { subs: -1, data: -1, payload: -1 }

/** A nats-server's operator with one account that has JetStream, beside the system's own. */
export function newOperator() {
  const [operator, account, system] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createAccount()]
  const [of, id, systemId] = [operator, account, system].map((pair) => pair.getPublicKey()) as [string, string, string]

  const accountJwt = (about: string, limits: object = {}) =>
    signed(operator, about, {
      limits: { ...unlimited, imports: -1, exports: -1, conn: -1, leaf: -1, ...limits },
      type: 'account',
      version: 2,
    })

  return {
    /** What a nats-server's configuration says of the operator in place of `authorization`. */
    configuration: `operator: ${signed(operator, of, { type: 'operator', version: 2 })}
system_account: ${systemId}
resolver: MEMORY
resolver_preload: {
  ${id}: ${accountJwt(id, { disk_storage: -1 })}
  ${systemId}: ${accountJwt(systemId)}
}
`,
    /** The text of a new user's file of credentials, who may do what is said and is let in until then, in seconds. */
    credentials({ publish, subscribe }: Partial<Permissions> = {}, until?: number) {
      const user = nkeys.createUser()
      const [pub, sub] = [publish, subscribe].map((subjects) => (subjects ? { allow: subjects } : {}))
      const jwt = signed(account, user.getPublicKey(), { ...unlimited, pub, sub, type: 'user', version: 2 }, until)
      return `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------

************************* IMPORTANT *************************
NKEY Seed printed below can be used to sign and prove identity.

-----BEGIN USER NKEY SEED-----\n${Buffer.from(user.getSeed()).toString()}\n------END USER NKEY SEED------
`
    },
  }
}
