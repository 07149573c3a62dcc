import { randomBytes } from 'node:crypto'
import { fchmodSync, fstatSync, writeFileSync } from 'node:fs'
import { runCommand } from './command.ts'
import { parseOnce } from './command-line.ts'
import { type DataServiceName, dataServices } from './migration-files.ts'
import { keyVariableOf } from './nats/authorization.ts'
import { publicKeyOf } from './nats/keys.ts'
import { type NatsUser, natsUsers } from './nats/permissions.ts'
import { roleOf } from './roles.ts'
import { newSecrets, seedVariableOf, type Secrets } from './stack/secrets.ts'

// New secrets for an installation, as a file of the environment: `node deploy/run.mjs deploy/new-secrets.ts deploy/secrets.env`,
// or, as the secrets that the chart reads: `… deploy/new-secrets.ts --kubernetes secrets.json`; without a file, on the output.
// What the platform gave you (UPSTREAM_…) and PUBLIC_URL are yours to fill in, and with --kubernetes where the servers are.

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

/** What each secret of the chart holds. POSTGRES_HOST, POSTGRES_PASSWORD, REDIS_HOST and what is empty are to be filled in. */
export function kubernetesSecretsOf(all: Record<string, string>): Record<string, Record<string, string>> {
  const of = (...names: string[]) => Object.fromEntries(names.map((name) => [name, all[name] ?? '']))
  const bus = (user: NatsUser) => ({ NATS_NKEY_SEED: all[seedVariableOf(user)] ?? '' })
  const database = (user: string, password = '') => ({
    DATABASE_URL: `postgres://${user}:${password}@POSTGRES_HOST:5432/messaging`,
  })
  const service = (name: DataServiceName) => ({
    ...bus(name),
    ...database(roleOf(name), all[passwordVariableOf(name)]),
  })
  const store = of('S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY')
  return {
    'messaging-gateway': {
      ...bus('gateway'),
      REDIS_URL: 'redis://REDIS_HOST:6379',
      ...of('UPSTREAM_APP_SECRET', 'UPSTREAM_VERIFY_TOKEN'),
      ...store,
    },
    'messaging-messaging': {
      ...service('messaging'),
      ...of('SEAL_KEYS', 'CURSOR_KEYS', 'UPSTREAM_APP_SECRET'),
      ...store,
    },
    'messaging-directory': { ...service('directory'), ...of('CURSOR_KEYS') },
    'messaging-platform': { ...service('platform'), ...of('SEAL_KEYS', 'CURSOR_KEYS', 'UPSTREAM_APP_SECRET') },
    'messaging-webhooks': { ...service('webhooks'), ...of('SEAL_KEYS', 'CURSOR_KEYS') },
    // The database's owner is made by whoever runs the server: nobody here knows the password.
    'messaging-migrate': {
      ...database('postgres', 'POSTGRES_PASSWORD'),
      ...of(...dataServices.map(passwordVariableOf)),
    },
    'messaging-deploy': bus('deploy'),
    'messaging-nats': of('NATS_CLUSTER_PASSWORD', ...natsUsers.map(keyVariableOf)),
  }
}

const passwordVariableOf = (service: DataServiceName) => `${service.toUpperCase()}_PASSWORD`

/** JSON, which kubectl reads as it reads YAML. */
function manifestOf(secrets: ReturnType<typeof kubernetesSecretsOf>) {
  const items = Object.entries(secrets).map(([name, stringData]) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name },
    type: 'Opaque',
    stringData,
  }))
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items }, null, 2)
}

async function main() {
  const usage = 'Usage: node deploy/run.mjs deploy/new-secrets.ts [--kubernetes] [FILE]'
  const options = { kubernetes: { type: 'boolean', default: false } } as const
  const { values, positionals } = parseOnce({ options, allowPositionals: true }, ` ${usage}`)
  const [file, ...more] = positionals
  if (more.length > 0) throw new Error(usage)
  const all = environmentOf(newSecrets())
  const lines = Object.entries(all).map(([name, value]) => `${name}=${value}`)
  const text = values.kubernetes ? manifestOf(kubernetesSecretsOf(all)) : `${toBeFilledIn}${lines.join('\n')}`
  if (file !== undefined) return writeNew(file, `${text}\n`)
  // The shell makes the file as the umask says, which is for all to read.
  if (fstatSync(process.stdout.fd).isFile()) fchmodSync(process.stdout.fd, 0o600)
  console.log(text)
}

/** Never in place of the secrets of an installation: what they have sealed opens with no others. */
function writeNew(file: string, text: string) {
  try {
    writeFileSync(file, text, { flag: 'wx', mode: 0o600, flush: true })
  } catch (err) {
    if (!(err instanceof Error && 'code' in err && err.code === 'EEXIST')) throw err
    throw new Error(`${file} is there already, and an installation may need what it holds. Name another file.`, {
      cause: err,
    })
  }
}

if (import.meta.main) await runCommand(main)
