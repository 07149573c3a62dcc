import { z } from 'zod'

/** The fields of a number that tell how much the platform takes from it. */
export const throughputFields = 'throughput,is_on_biz_app'

export const Throughput = z.object({
  throughput: z.object({ level: z.string() }).nullish().catch(null),
  is_on_biz_app: z.boolean().nullish().catch(null),
})

/** After an upgrade that the platform makes by itself, and of a number that stays in the phone's app (its throughput documentation). */
const upgraded = 1_000
const inBusinessApp = 20

/** Messages a second that the platform takes from a number; null: its usual 80. */
export function messagesPerSecondOf(number: z.output<typeof Throughput>): number | null {
  if (number.is_on_biz_app) return inBusinessApp
  return number.throughput?.level === 'HIGH' ? upgraded : null
}

/** Whether a number with such a pace stays in the phone's app. */
export const isInBusinessApp = (messagesPerSecond: number | null): boolean => messagesPerSecond === inBusinessApp
