import { tierName } from '@app/shared/contracts/platform.ts'
import { z } from 'zod'

type TierName = z.output<typeof tierName>

const Rates = z.object({ write_per_minute: z.int().min(1), read_per_minute: z.int().min(1) })
export type RateTiers = Record<TierName, z.output<typeof Rates>>

const defaults: RateTiers = {
  starter: { write_per_minute: 60, read_per_minute: 600 },
  standard: { write_per_minute: 600, read_per_minute: 6_000 },
  pro: { write_per_minute: 6_000, read_per_minute: 60_000 },
  // A number that nobody reaches: 166,667 requests a second.
  unlimited: { write_per_minute: 10_000_000, read_per_minute: 10_000_000 },
}

const otherTiers = ({ code }: z.core.$ZodRawIssue) =>
  code === 'unrecognized_keys' ? `must have no other tiers than ${tierName.options.join(', ')}` : undefined

/** Rate tiers in the environment: `{"pro":{"write_per_minute":6000,"read_per_minute":60000}}`; those not named stay as they are. */
export const rateTiers = z
  .string()
  .default('{}')
  .transform((text, context) => {
    try {
      return JSON.parse(text) as unknown
    } catch {
      context.addIssue('must be JSON')
      return z.NEVER
    }
  })
  .pipe(z.partialRecord(tierName, Rates, { error: otherTiers }))
  .transform((given): RateTiers => ({ ...defaults, ...given }))

/** A tier with its budgets, as answers show it. */
export const tierOf = (tiers: RateTiers, name: TierName) => ({ name, ...tiers[name] })
