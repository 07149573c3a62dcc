import { randomBytes } from 'node:crypto'
import { keyVariableOf } from './nats/authorization.ts'
import { publicKeyOf } from './nats/keys.ts'
import { natsUsers } from './nats/permissions.ts'
import { newSecrets, seedVariableOf, type Secrets } from './stack/secrets.ts'

// New secrets for an installation, as a file of the environment: `node deploy/run.mjs deploy/new-secrets.ts > deploy/secrets.env`.
// What the platform gave you (UPSTREAM_…) and PUBLIC_URL are yours to fill in.

/** The lines of the file. A seed is a user's secret; its public key is what the nats-server knows it by. */
export function environmentOf(secrets: Secrets): Record<string, string> {
  return {
    POSTGRES_PASSWORD: randomBytes(24).toString('base64url'),
    MESSAGING_PASSWORD: secrets.messagingPassword,
    DIRECTORY_PASSWORD: secrets.directoryPassword,
    PLATFORM_PASSWORD: secrets.platformPassword,
    WEBHOOKS_PASSWORD: secrets.webhooksPassword,
    SEAL_KEYS: secrets.sealKeys,
    CURSOR_KEYS: secrets.cursorKeys,
    UPSTREAM_VERIFY_TOKEN: secrets.upstreamVerifyToken,
    // The server reads a word that begins with a digit as a number.
    NATS_CLUSTER_PASSWORD: `p${randomBytes(24).toString('base64url')}`,
    ...Object.fromEntries(natsUsers.map((user) => [seedVariableOf(user), secrets[`${user}NatsSeed`]])),
    ...Object.fromEntries(natsUsers.map((user) => [keyVariableOf(user), publicKeyOf(secrets[`${user}NatsSeed`])])),
  }
}

const toBeFilledIn = `# The address under which the world reaches the gateway, without a slash at the end.
PUBLIC_URL=
# Of your app at the platform.
UPSTREAM_APP_ID=
UPSTREAM_APP_SECRET=
`

if (import.meta.main) {
  const lines = Object.entries(environmentOf(newSecrets())).map(([name, value]) => `${name}=${value}`)
  console.log(`${toBeFilledIn}${lines.join('\n')}`)
}
