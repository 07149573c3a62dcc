import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { maxMediaBytes } from '@app/shared/files/media-kinds.ts'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { kubernetesSecretsOf } from '../new-secrets.ts'
import { repository, serviceNames } from '../stack/options.ts'
import { faultsOf, schemas } from '../testing/kubernetes-schemas.ts'
import { examples, headerOf, readRendered, render } from './render.ts'

interface Selector {
  matchLabels: Record<string, string>
}
interface Container {
  name: string
  command?: string[]
  args?: string[]
  env?: Array<{ name: string; value: string }>
  volumeMounts?: Array<{ name: string; mountPath: string }>
  envFrom: Array<{ secretRef: { name: string } }>
}
interface Pod {
  metadata: { labels: Record<string, string> }
  spec: {
    serviceAccountName?: string
    initContainers?: Container[]
    containers: Container[]
    volumes?: Array<{ name: string; configMap?: object }>
  }
}
interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; annotations?: Record<string, string> }
  spec: {
    selector?: Selector
    podSelector?: Selector
    egress?: unknown
    scaleTargetRef?: { name: string }
    activeDeadlineSeconds?: number
    template?: Pod
    jobTemplate?: { spec: { template: Pod } }
  }
}

const manifestsOf = (text: string) =>
  parseAllDocuments(text).flatMap((document) => (document.toJS() as Manifest | null) ?? [])
const titleOf = ({ kind, metadata: { name } }: Manifest) => `${kind} ${name}`
function podOf({ spec }: Manifest) {
  const pod = spec.template ?? spec.jobTemplate?.spec.template
  if (pod === undefined) throw new Error('it has no pod')
  return pod
}
function containersOf(manifest: Manifest) {
  const { initContainers = [], containers } = podOf(manifest).spec
  return [...initContainers, ...containers]
}

describe.each(examples)('the chart with $values', (example) => {
  const text = readRendered(example)
  const manifests = manifestsOf(text)
  const ofKind = (kind: string) => manifests.filter((manifest) => manifest.kind === kind)
  const workloads = [...ofKind('Deployment'), ...ofKind('Job'), ...ofKind('CronJob')]
  const mayHave = (kind: string) => !example.without.includes(kind)

  test(`${example.rendered} is what it makes now (node deploy/run.mjs deploy/chart/render.ts)`, () => {
    expect(text.startsWith(headerOf(example))).toBe(true)
  })

  test.skipIf(render(example) === undefined)('helm renders the same', () => {
    const byTitle = (some: Manifest[]) => Object.fromEntries(some.map((one) => [titleOf(one), one]))
    expect(byTitle(manifestsOf(render(example) ?? ''))).toEqual(byTitle(manifests))
  })

  test('it has one of each kind at least, but for those that it is without', () => {
    const kinds = [...new Set(manifests.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`))]
    const expected = [...schemas.keys()].filter((title) => mayHave(title.split(' ')[1] ?? ''))
    expect(kinds.toSorted()).toEqual(expected.toSorted())
  })

  test.runIf(mayHave('Ingress'))('the ingress lets the largest file through', () => {
    const [only] = ofKind('Ingress')
    const size = only?.metadata.annotations?.['nginx.ingress.kubernetes.io/proxy-body-size']
    expect(size).toMatch(/^\d+m$/)
    expect(Number.parseInt(size ?? '', 10) * 1024 ** 2).toBeGreaterThan(maxMediaBytes + 1024 ** 2 / 2)
  })

  test.each(manifests.map((manifest) => ({ title: titleOf(manifest), manifest })))(
    '$title fits its schema, and has no field that the schema does not know',
    ({ manifest }) => {
      expect(faultsOf(manifest)).toEqual({ errors: null, unknown: [] })
    },
  )

  describe.each(workloads.map((manifest) => ({ name: manifest.metadata.name, manifest })))(
    '$name',
    ({ name, manifest }) => {
      const { spec, metadata } = podOf(manifest)
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
          // The pod of the commands waits for them.
          const [script] = container.command?.[0] === 'sleep' ? ['deploy/admin.ts'] : (container.args ?? [])
          expect(existsSync(join(repository, script ?? 'none'))).toBe(true)
        }
      })

      test.runIf(mayHave('NetworkPolicy'))('has a network policy, and no other names it', () => {
        expect(ofKind('NetworkPolicy').filter((each) => isSelected(each.spec.podSelector))).toHaveLength(1)
      })

      test.runIf(manifest.kind === 'Deployment')('has probes, a budget, an autoscaler and an account', () => {
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
    const mounted = [...ofKind('Deployment'), ...ofKind('Job')].flatMap((manifest) =>
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

test('what lies in the cluster is reached by those who use it, and the world by nobody who need not', () => {
  const [, everything] = examples
  const policies = everything
    ? manifestsOf(readRendered(everything)).filter(({ kind }) => kind === 'NetworkPolicy')
    : []
  const whoReaches = (what: string) =>
    policies.filter(({ spec }) => JSON.stringify(spec.egress).includes(what)).map(({ metadata }) => metadata.name)
  const named = (...names: string[]) => names.map((name) => `messaging-${name}`)
  // The store of files, the proxy for calls out, the collector of traces.
  expect(whoReaches('"port":9000')).toEqual(named('gateway', 'messaging'))
  expect(whoReaches('"port":3128')).toEqual(named('messaging', 'platform', 'webhooks'))
  expect(whoReaches('"port":4318')).toEqual(named(...[...serviceNames].toSorted()))
  expect(whoReaches('0.0.0.0/0')).toEqual(named('messaging', 'platform', 'webhooks'))
  expect(whoReaches('"port":5432')).toEqual(named('directory', 'messaging', 'platform', 'webhooks', 'migrate'))
})

test('every program of an installation with an authority of its own finds its certificate, and no other is told of one', () => {
  for (const example of examples) {
    const programs = manifestsOf(readRendered(example)).filter(({ kind }) =>
      ['Deployment', 'Job', 'CronJob'].includes(kind),
    )
    for (const manifest of programs) {
      const expected = example.values === 'everything.yaml' ? ['/etc/messaging'] : []
      const told = containersOf(manifest).map(({ env = [], volumeMounts = [] }) => {
        const file = env.find(({ name }) => name === 'NODE_EXTRA_CA_CERTS')?.value
        const folders = volumeMounts.flatMap(({ name, mountPath }) => (name === 'authorities' ? [mountPath] : []))
        return { folders, isFound: file === (folders[0] && `${folders[0]}/authorities.pem`) }
      })
      for (const each of told) expect(each, titleOf(manifest)).toEqual({ folders: expected, isFound: true })
      const volumes = podOf(manifest).spec.volumes?.filter(({ name }) => name === 'authorities') ?? []
      const items = [{ key: 'ca.crt', path: 'authorities.pem' }]
      expect(volumes).toEqual(
        expected.map(() => ({ name: 'authorities', configMap: { name: 'company-authority', items } })),
      )
    }
  }
})

test('the pages have helm wait for as long as the job may take: it gives up after five minutes else', () => {
  const [job] = examples.flatMap((example) => manifestsOf(readRendered(example))).filter(({ kind }) => kind === 'Job')
  const commands = ['docs/deploying.md', 'docs/operations/upgrading.md'].flatMap((page) =>
    readFileSync(join(repository, page), 'utf8').match(/^ *helm upgrade .*/gm),
  )
  expect(commands).toHaveLength(2)
  for (const command of commands) {
    const [, minutes] = /--timeout (\d+)m/.exec(command ?? '') ?? []
    expect(Number(minutes) * 60, command ?? '').toBeGreaterThan(job?.spec.activeDeadlineSeconds ?? Infinity)
  }
})

describe.skipIf(render({ values: 'example.yaml' }) === undefined)('helm refuses', () => {
  const refusals: Array<[string, RegExp]> = [
    ['publicUrl=', /publicUrl must be set/],
    ['upstream.appId=', /upstream\.appId must be set/],
    ['upstream.appId=1000', /upstream\.appId must stand in quotes/],
    ['upstream.signupConfigId=2000', /upstream\.signupConfigId must stand in quotes/],
    ['media.s3.bucket=', /media\.s3\.bucket must be set/],
    ['ingress.host=', /ingress\.host must be set/],
  ]
  test.each(refusals)('%s, with words', (set, words) => {
    expect(() => render({ values: 'example.yaml' }, [set])).toThrow(words)
  })
})
