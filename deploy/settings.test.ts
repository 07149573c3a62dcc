import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { examples, readRendered } from './chart/render.ts'
import { kubernetesSecretsOf } from './new-secrets.ts'
import { repository, type ServiceName, serviceNames } from './stack/options.ts'
import { settingsByReader, settingsOf } from './testing/settings.ts'

const read = (path: string) => readFileSync(join(repository, path), 'utf8')

/** What the image sets for all. */
const ofImage = [...read('deploy/image/Dockerfile').matchAll(/^ENV (.*)$/gm)]
  .flatMap(([, pairs = '']) => pairs.split(' '))
  .map((pair) => pair.split('=')[0] ?? '')

/** What Node reads of itself. */
const ofNode = 'NODE_EXTRA_CA_CERTS'

const compose = z
  .object({ services: z.record(z.string(), z.object({ environment: z.record(z.string(), z.unknown()).default({}) })) })
  .parse(parse(read('deploy/compose.yaml'), { merge: true }))

const Rendered = z.object({
  kind: z.literal('Deployment'),
  spec: z.object({
    template: z.object({
      spec: z.object({
        containers: z.array(
          z.object({
            name: z.string(),
            env: z.array(z.object({ name: z.string() })),
            envFrom: z.array(z.object({ secretRef: z.object({ name: z.string() }) })),
          }),
        ),
      }),
    }),
  }),
})
const containers = examples.flatMap((example) =>
  parseAllDocuments(readRendered(example)).flatMap((document) => {
    const { data } = Rendered.safeParse(document.toJS())
    return data?.spec.template.spec.containers ?? []
  }),
)
const secrets = kubernetesSecretsOf({})

/** What each way of running the services tells one of them, at most. */
const told: Record<string, (service: ServiceName) => string[]> = {
  'the compose file': (service) => Object.keys(compose.services[service]?.environment ?? {}),
  'the chart': (service) =>
    containers
      .filter(({ name }) => name === service)
      .flatMap(({ env, envFrom }) => [
        ...env.map(({ name }) => name),
        ...envFrom.flatMap(({ secretRef }) => Object.keys(secrets[secretRef.name] ?? {})),
      ]),
}

const ofThePlatform = 'the default is what the platform itself has'
const upstream = {
  UPSTREAM_KEEPALIVE_MS: ofThePlatform,
  UPSTREAM_MEDIA_ORIGINS: ofThePlatform,
  UPSTREAM_DIALOG_URL: ofThePlatform,
  UPSTREAM_DIALOG_ORIGINS: ofThePlatform,
  UPSTREAM_SIGNUP_EXTRAS: ofThePlatform,
  UPSTREAM_SUBSCRIBE_APPS: 'connecting a number subscribes the app to it',
}
/** Deliberately left at their defaults, and why. */
const left: Record<string, Record<string, string>> = {
  'the compose file': {
    ...upstream,
    NATS_REPLICAS: 'there is one nats-server',
    MEDIA_STORE: 'files lie in a volume of the machine',
    S3_BUCKET: 'as MEDIA_STORE',
    S3_REGION: 'as MEDIA_STORE',
    S3_ENDPOINT: 'as MEDIA_STORE',
    S3_ACCESS_KEY_ID: 'as MEDIA_STORE',
    S3_SECRET_ACCESS_KEY: 'as MEDIA_STORE',
    S3_SESSION_TOKEN: 'as MEDIA_STORE',
  },
  'the chart': {
    ...upstream,
    S3_SESSION_TOKEN: 'keys of a secret do not end',
  },
}

describe.each(Object.keys(told))('%s', (way) => {
  const tells = (service: ServiceName) => [...(told[way]?.(service) ?? []), ...ofImage]
  const reasons = left[way] ?? {}

  test.each(serviceNames)('tells %s all that it reads, or leaves it at its default on purpose', (service) => {
    const known = new Set([...tells(service), ...Object.keys(reasons)])
    expect(settingsOf(service).filter((name) => !known.has(name))).toEqual([])
  })

  test.each(serviceNames)('tells %s nothing that it does not read', (service) => {
    const reads = new Set([...settingsOf(service), ...ofImage, ofNode])
    expect(tells(service).filter((name) => !reads.has(name))).toEqual([])
  })

  test('leaves at its default only what is read and told to nobody', () => {
    const isRead = settingsByReader()
    const isTold = new Set(serviceNames.flatMap(tells))
    expect(Object.keys(reasons).filter((name) => !isRead.has(name) || isTold.has(name))).toEqual([])
  })
})
