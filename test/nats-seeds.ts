/** Of the secrets of an installation, those with which its services and the operator log in at nats-server. */
export const seedsIn = (secrets: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(secrets).filter(([name]) => name.startsWith('NATS_SEED_')))
