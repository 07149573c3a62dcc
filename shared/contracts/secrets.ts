import { z } from 'zod'
import { rpc } from '../api/contract.ts'

const SealedCount = z.object({
  table: z.string(),
  key: z.string(),
  state: z.enum(['current', 'old', 'missing']),
  /** At most 10,000 are counted. */
  count: z.int(),
})
export type SealedCount = z.output<typeof SealedCount>

/** The row at which a batch ended. */
const Place = z.object({ table: z.string(), key: z.string(), row: z.array(z.string()) })
export type Place = z.output<typeof Place>

type Sealing = 'messaging' | 'platform' | 'webhooks'

export const countSecretsOf = <S extends Sealing>(service: S) =>
  rpc({
    subject: `rpc.${service}.count-secrets` as const,
    summary: `Count what ${service} has sealed, by table and key`,
    answer: z.object({ counts: z.array(SealedCount) }),
  })

/** One batch: asked again and again, with the `next` of the answer before, until that is null. */
export const resealSecretsOf = <S extends Sealing>(service: S) =>
  rpc({
    subject: `rpc.${service}.reseal-secrets` as const,
    summary: `Seal again, under the current key, what older keys sealed for ${service}`,
    /** `current`: the key that the asker means; an instance with another one refuses. */
    body: z.object({ current: z.string(), after: Place.nullable() }),
    answer: z.object({ resealed: z.int(), unopened: z.int(), next: Place.nullable() }),
  })
