import { validate as deployment } from 'kubernetes-models/_schemas/IoK8sApiAppsV1Deployment'
import { validate as horizontalPodAutoscaler } from 'kubernetes-models/_schemas/IoK8sApiAutoscalingV2HorizontalPodAutoscaler'
import { validate as cronJob } from 'kubernetes-models/_schemas/IoK8sApiBatchV1CronJob'
import { validate as job } from 'kubernetes-models/_schemas/IoK8sApiBatchV1Job'
import { validate as ingress } from 'kubernetes-models/_schemas/IoK8sApiNetworkingV1Ingress'
import { validate as networkPolicy } from 'kubernetes-models/_schemas/IoK8sApiNetworkingV1NetworkPolicy'
import { validate as persistentVolumeClaim } from 'kubernetes-models/_schemas/IoK8sApiCoreV1PersistentVolumeClaim'
import { validate as podDisruptionBudget } from 'kubernetes-models/_schemas/IoK8sApiPolicyV1PodDisruptionBudget'
import { validate as service } from 'kubernetes-models/_schemas/IoK8sApiCoreV1Service'
import { validate as serviceAccount } from 'kubernetes-models/_schemas/IoK8sApiCoreV1ServiceAccount'
import { z } from 'zod'

type Schema = ((data: unknown) => boolean) & { errors?: unknown }

/** What the chart uses of the Prometheus Operator's resource. */
const PodMonitor = z.object({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.object({ name: z.string(), labels: z.record(z.string(), z.string()) }),
  spec: z.object({
    selector: z.object({ matchLabels: z.record(z.string(), z.string()) }),
    podMetricsEndpoints: z.array(
      z.object({
        port: z.literal('probes'),
        interval: z.string().regex(/^\d+s$/),
        relabelings: z.array(z.object({ targetLabel: z.string(), replacement: z.string() })),
      }),
    ),
  }),
})
const podMonitor: Schema = (data) => {
  const { error } = PodMonitor.safeParse(data)
  podMonitor.errors = error ?? null
  return error === undefined
}

/** By apiVersion and kind, of all kinds that the chart makes. */
export const schemas: ReadonlyMap<string, Schema> = new Map([
  ['apps/v1 Deployment', deployment],
  ['autoscaling/v2 HorizontalPodAutoscaler', horizontalPodAutoscaler],
  ['batch/v1 CronJob', cronJob],
  ['batch/v1 Job', job],
  ['monitoring.coreos.com/v1 PodMonitor', podMonitor],
  ['networking.k8s.io/v1 Ingress', ingress],
  ['networking.k8s.io/v1 NetworkPolicy', networkPolicy],
  ['policy/v1 PodDisruptionBudget', podDisruptionBudget],
  ['v1 PersistentVolumeClaim', persistentVolumeClaim],
  ['v1 Service', service],
  ['v1 ServiceAccount', serviceAccount],
])

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

/** What the schema of its kind finds wrong with a manifest, and the fields of it that the schema does not know. */
export function faultsOf({ apiVersion, kind, ...fields }: { apiVersion: string; kind: string }): {
  errors: unknown
  unknown: string[]
} {
  const unread = new Set<string>()
  const validate = schemas.get(`${apiVersion} ${kind}`)
  validate?.(watched({ apiVersion, kind, ...structuredClone(fields) }, '', unread))
  return { errors: validate?.errors, unknown: [...unread] }
}
