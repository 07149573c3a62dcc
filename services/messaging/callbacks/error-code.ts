import { z } from 'zod'

/** The platform's error code, a number or, now and then, its digits as text. */
export const errorCode = z.union([
  z.number(),
  z
    .string()
    .regex(/^\d{1,9}$/)
    .transform(Number),
])
