import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { validate as deployment } from 'kubernetes-models/_schemas/IoK8sApiAppsV1Deployment'
import { validate as horizontalPodAutoscaler } from 'kubernetes-models/_schemas/IoK8sApiAutoscalingV2HorizontalPodAutoscaler'
import { validate as job } from 'kubernetes-models/_schemas/IoK8sApiBatchV1Job'
import { validate as ingress } from 'kubernetes-models/_schemas/IoK8sApiNetworkingV1Ingress'
import { validate as networkPolicy } from 'kubernetes-models/_schemas/IoK8sApiNetworkingV1NetworkPolicy'
import { validate as persistentVolumeClaim } from 'kubernetes-models/_schemas/IoK8sApiCoreV1PersistentVolumeClaim'
import { validate as podDisruptionBudget } from 'kubernetes-models/_schemas/IoK8sApiPolicyV1PodDisruptionBudget'
import { validate as service } from 'kubernetes-models/_schemas/IoK8sApiCoreV1Service'
import { validate as serviceAccount } from 'kubernetes-models/_schemas/IoK8sApiCoreV1ServiceAccount'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { kubernetesSecretsOf } from '../new-secrets.ts'
import { repository, serviceNames } from '../stack/options.ts'
import { examples, headerOf, readRendered, render } from './render.ts'

interface Selector {
  matchLabels: Record<string, string>
}
interface Container {
  name: string
  args: string[]
  env?: Array<{ name: string; value: string }>
  envFrom: Array<{ secretRef: { name: string } }>
}
interface PodSpec {
  serviceAccountName?: string
  initContainers?: Container[]
  containers: Container[]
}
interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string }
  spec: {
    selector?: Selector
    podSelector?: Selector
    scaleTargetRef?: { name: string }
    template: { metadata: { labels: Record<string, string> }; spec: PodSpec }
  }
}

const manifestsOf = (text: string) =>
  parseAllDocuments(text).flatMap((document) => (document.toJS() as Manifest | null) ?? [])
const titleOf = ({ kind, metadata: { name } }: Manifest) => `${kind} ${name}`
const containersOf = ({ spec }: Manifest) => [
  ...(spec.template.spec.initContainers ?? []),
  ...spec.template.spec.containers,
]

type Schema = ((data: unknown) => boolean) & { errors?: unknown }

const schemas: Record<string, Schema> = {
  'apps/v1 Deployment': deployment,
  'autoscaling/v2 HorizontalPodAutoscaler': horizontalPodAutoscaler,
  'batch/v1 Job': job,
  'networking.k8s.io/v1 Ingress': ingress,
  'networking.k8s.io/v1 NetworkPolicy': networkPolicy,
  'policy/v1 PodDisruptionBudget': podDisruptionBudget,
  'v1 PersistentVolumeClaim': persistentVolumeClaim,
  'v1 Service': service,
  'v1 ServiceAccount': serviceAccount,
}

/** The schemas are functions, which read the fields that they know: what nobody has read is known to none. */
function watched<T>(value: T, path: string, unread: Set<string>): T {
  if (typeof value !== 'object' || value === null) return value
  for (const [key, inner] of Object.entries(value)) {
    unread.add(`${path}.${key}`)
    Reflect.set(value, key, watched(inner, `${path}.${key}`, unread))
  }
  return new Proxy(value, {
    get(target, key) {
      unread.delete(`${path}.${String(key)}`)
      return Reflect.get(target, key) as unknown
    },
  })
}

describe.each(examples)('the chart with $values', (example) => {
  const text = readRendered(example)
  const manifests = manifestsOf(text)
  const ofKind = (kind: string) => manifests.filter((manifest) => manifest.kind === kind)
  const workloads = [...ofKind('Deployment'), ...ofKind('Job')]

  test(`${example.rendered} is what it makes now (node deploy/run.mjs deploy/chart/render.ts)`, () => {
    expect(text.startsWith(headerOf(example))).toBe(true)
  })

  test.skipIf(render(example) === undefined)('helm renders the same', () => {
    const byTitle = (some: Manifest[]) => Object.fromEntries(some.map((one) => [titleOf(one), one]))
    expect(byTitle(manifestsOf(render(example) ?? ''))).toEqual(byTitle(manifests))
  })

  test.each(manifests.map((manifest) => ({ title: titleOf(manifest), manifest })))(
    '$title fits its schema, and has no field that the schema does not know',
    ({ manifest }) => {
      const unread = new Set<string>()
      const { apiVersion, kind, ...fields } = manifest
      const validate = schemas[`${apiVersion} ${kind}`]
      validate?.(watched({ apiVersion, kind, ...structuredClone(fields) }, '', unread))
      expect(validate?.errors).toBeNull()
      expect([...unread]).toEqual([])
    },
  )

  describe.each(workloads.map((manifest) => ({ name: manifest.metadata.name, manifest })))(
    '$name',
    ({ name, manifest }) => {
      const { spec, metadata } = manifest.spec.template
      const isSelected = (selector: Selector | undefined) =>
        selector !== undefined &&
        Object.entries(selector.matchLabels).every(([label, value]) => metadata.labels[label] === value)

      test('runs as nobody, without rights, on a file system that it cannot write', () => {
        expect(spec).toMatchObject({
          automountServiceAccountToken: false,
          securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
        })
        for (const container of containersOf(manifest)) {
          expect(container).toMatchObject({
            securityContext: {
              allowPrivilegeEscalation: false,
              readOnlyRootFilesystem: true,
              capabilities: { drop: ['ALL'] },
            },
            resources: { requests: expect.anything(), limits: { memory: expect.anything() } },
          })
          expect(existsSync(join(repository, container.args[0] ?? 'none'))).toBe(true)
        }
      })

      test('has a network policy, and no other names it', () => {
        expect(ofKind('NetworkPolicy').filter((each) => isSelected(each.spec.podSelector))).toHaveLength(1)
      })

      test.skipIf(manifest.kind === 'Job')('has probes, a budget, an autoscaler and an account', () => {
        expect(isSelected(manifest.spec.selector)).toBe(true)
        expect(spec.containers[0]).toMatchObject({ livenessProbe: {}, readinessProbe: {}, startupProbe: {} })
        expect(ofKind('PodDisruptionBudget').filter((each) => isSelected(each.spec.selector))).toHaveLength(1)
        expect(
          ofKind('HorizontalPodAutoscaler').filter(({ spec: { scaleTargetRef } }) => scaleTargetRef?.name === name),
        ).toHaveLength(1)
        expect(ofKind('ServiceAccount').map((each) => each.metadata.name)).toContain(spec.serviceAccountName)
      })
    },
  )

  describe('the secrets', () => {
    const secrets = kubernetesSecretsOf({})
    const mounted = workloads.flatMap((manifest) =>
      containersOf(manifest).map((container) => ({ container, secret: container.envFrom[0]?.secretRef.name ?? '' })),
    )

    test('each is read by one program alone', () => {
      const names = mounted.map(({ secret }) => secret)
      // The eighth is for the nats-servers themselves.
      expect([...names, 'messaging-nats'].toSorted()).toEqual(Object.keys(secrets).toSorted())
    })

    const compose = parse(readFileSync(join(repository, 'deploy/compose.yaml'), 'utf8'), { merge: true }) as {
      services: Record<string, { environment: Record<string, string | null> }>
    }
    test.each([...serviceNames, 'migrate', 'provision'])('%s is told what the compose file tells it', (name) => {
      const { container, secret } = mounted.find((each) => each.container.name === name) ?? {}
      const told = [...(container?.env ?? []).map((each) => each.name), ...Object.keys(secrets[secret ?? ''] ?? {})]
      const needed = Object.entries(compose.services[name]?.environment ?? {}).flatMap(([variable, value]) =>
        value === null || variable === 'MEDIA_DIR' ? [] : [variable],
      )
      expect(told).toEqual(expect.arrayContaining(needed))
    })
  })
})
