import { randomInt } from 'node:crypto'

/** Decides which instance of a service is killed, and how long people rest: `CLUSTER_SEED=7 npm run test:cluster`. */
export const seed = Number(process.env['CLUSTER_SEED'] || randomInt(1_000_000))
