import { randomBytes } from 'node:crypto'
import type { Readable } from 'node:stream'
import { z } from 'zod'
import { httpUrl } from '../service/environment.ts'
import { folderStore } from './folder.ts'
import { s3Store } from './s3.ts'

/** What was kept of a stream of bytes. */
export interface Kept {
  size: number
  /** Of the bytes, in hex. */
  sha256: string
}

/** A part of a file, both ends included. */
export interface ByteRange {
  start: number
  end: number
}

/** Where files lie: written once under a key that nobody else has, never changed. */
export interface Store {
  /** Keeps the bytes. When it throws, be it what the bytes themselves threw, nothing lies under the key. */
  put: (fileKey: string, bytes: AsyncIterable<Uint8Array>) => Promise<Kept>
  /** The bytes, or a part of them; null when nothing lies there. */
  open: (fileKey: string, range?: ByteRange) => Promise<Readable | null>
  /** Nothing lies under the key afterwards, whether something did or not. */
  delete: (fileKey: string) => Promise<void>
  close: () => Promise<void>
}

/** The store's settings in the environment; the same ones for every service that has files. */
export const storeSettings = {
  MEDIA_STORE: z.enum(['folder', 's3']).default('folder'),
  /** The folder, when files lie in one; shared by the services that have files. */
  MEDIA_DIR: z.string().min(1).optional(),
  S3_BUCKET: z.string().min(1).optional(),
  S3_REGION: z.string().min(1).default('us-east-1'),
  /** Of a server that is compatible with S3; without it Amazon's own. */
  S3_ENDPOINT: httpUrl.optional(),
  S3_ACCESS_KEY_ID: z.string().min(1).optional(),
  S3_SECRET_ACCESS_KEY: z.string().min(1).optional(),
  S3_SESSION_TOKEN: z.string().min(1).optional(),
}

type StoreEnv = z.output<z.ZodObject<typeof storeSettings>>

/** What the store that the environment names lacks. */
export function storeFault(env: StoreEnv): string | null {
  const needs =
    env.MEDIA_STORE === 's3'
      ? (['S3_BUCKET', 'S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'] as const)
      : (['MEDIA_DIR'] as const)
  const missing = needs.filter((name) => env[name] === undefined)
  return missing.length === 0 ? null : `MEDIA_STORE is "${env.MEDIA_STORE}": ${missing.join(', ')} must be set.`
}

/** The store that the environment names. Throws a sentence about what is missing. */
export function createStore(env: StoreEnv): Store {
  if (env.MEDIA_STORE === 's3') {
    return s3Store({
      bucket: needed(env, 'S3_BUCKET'),
      region: env.S3_REGION,
      endpoint: env.S3_ENDPOINT ?? `https://s3.${env.S3_REGION}.amazonaws.com`,
      accessKeyId: needed(env, 'S3_ACCESS_KEY_ID'),
      secretAccessKey: needed(env, 'S3_SECRET_ACCESS_KEY'),
      sessionToken: env.S3_SESSION_TOKEN,
    })
  }
  return folderStore(needed(env, 'MEDIA_DIR'))
}

function needed(env: StoreEnv, name: 'MEDIA_DIR' | 'S3_BUCKET' | 'S3_ACCESS_KEY_ID' | 'S3_SECRET_ACCESS_KEY') {
  const value = env[name]
  if (value === undefined) throw new Error(`MEDIA_STORE is "${env.MEDIA_STORE}": ${name} must be set.`)
  return value
}

/** A key that nobody has: two levels, so that no folder grows large. */
export function newFileKey(): string {
  const name = randomBytes(16).toString('hex')
  return `${name.slice(0, 2)}/${name}`
}
