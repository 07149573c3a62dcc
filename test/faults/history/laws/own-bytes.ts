import type { Law } from '../law.ts'

/** Nothing that is another's stands in an answer or a delivery. */
export const ownBytes: Law = ({ tenants, calls, deliveries, subscriptions }) => {
  const others = new Map(
    tenants.map(({ id }) => [id, tenants.filter((one) => one.id !== id).flatMap(({ own }) => own)]),
  )
  const owners = new Map(subscriptions.map(({ id, tenant }) => [id, tenant]))
  const leaks = (tenant: string | undefined, text: string, where: string) =>
    (others.get(tenant ?? '') ?? [])
      .filter((word) => text.includes(word))
      .map((word) => `${where} shows ${word} to ${tenant}`)
  return [
    ...calls.flatMap(({ tenant, method, path, text }) => leaks(tenant, text, `${method} ${path}`)),
    ...deliveries.flatMap(({ subscription, type, raw }) => leaks(owners.get(subscription), raw, type)),
  ]
}
