import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { DataServiceName } from '../migration-files.ts'
import { newSeed } from '../nats/keys.ts'
import type { NatsUser } from '../nats/permissions.ts'
import { dataFolders } from '../servers/postgres-data.ts'
import { readJson, writeJson } from './json-file.ts'

const random = (bytes: number) => randomBytes(bytes).toString('base64url')
const keyRing = () => `k1:${randomBytes(32).toString('base64')}`
const text = (make: () => string) => z.string().default(make)

// A secret that an older version did not know is made when it is missing; one that only a newer version knows is kept for it.
const secretsFile = z.looseObject({
  messagingPassword: text(() => random(24)),
  directoryPassword: text(() => random(24)),
  platformPassword: text(() => random(24)),
  webhooksPassword: text(() => random(24)),
  sealKeys: text(keyRing),
  cursorKeys: text(keyRing),
  upstreamAppId: text(() => String(randomBytes(6).readUIntBE(0, 6))),
  upstreamAppSecret: text(() => randomBytes(16).toString('hex')),
  upstreamVerifyToken: text(() => random(24)),
  gatewayNatsSeed: text(newSeed),
  messagingNatsSeed: text(newSeed),
  directoryNatsSeed: text(newSeed),
  platformNatsSeed: text(newSeed),
  webhooksNatsSeed: text(newSeed),
  deployNatsSeed: text(newSeed),
})
export type Secrets = z.infer<typeof secretsFile>

/** The passwords of the services' roles. */
export const passwordsOf = (secrets: Secrets): Record<DataServiceName, string> => ({
  messaging: secrets.messagingPassword,
  directory: secrets.directoryPassword,
  platform: secrets.platformPassword,
  webhooks: secrets.webhooksPassword,
})

/** Where the environment holds what a user logs in with, for servers with users of their own. */
export const seedVariableOf = (user: NatsUser): string => `NATS_SEED_${user.toUpperCase()}`

/**
 * What a user of our own nats-server logs in with. At one given by an address it is `NATS_SEED_<USER>`, else
 * `NATS_NKEY_SEED`, if that has users.
 */
export function natsSeedOf(secrets: Secrets, user: NatsUser): string | undefined {
  const { env } = process
  if (!env['NATS_URL']) return secrets[`${user}NatsSeed`]
  return env[seedVariableOf(user)] || env['NATS_NKEY_SEED'] || undefined
}

export const newSecrets = (): Secrets => secretsFile.parse({})

/** This data folder's secrets, made at its first start and kept in `secrets.json`, which nobody else may read. */
export function keepSecrets(dataDir: string): Secrets {
  const file = join(dataDir, 'secrets.json')
  const kept = readJson(file) ?? noSecretsYet(dataDir)
  const secrets = secretsFile.parse(kept)
  // Without them what is sealed opens no more: once written, they are left alone.
  if (!isDeepStrictEqual(secrets, kept)) writeJson(file, secrets)
  return secrets
}

/** What every start leaves that came further than its secrets: the last one also with servers given by an address. */
const leftByStart = ['postgres.json', ...dataFolders, 'demo.json']

function noSecretsYet(dataDir: string) {
  if (leftByStart.some((name) => existsSync(join(dataDir, name)))) {
    throw new Error(
      `secrets.json is missing in ${dataDir}, and with new ones its database could be read in part only. ` +
        'Put the file back, or remove the folder to begin anew.',
    )
  }
  return {}
}
