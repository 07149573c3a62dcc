import { z } from 'zod'

/** The platform's time, epoch seconds as text or number; never in the future. */
export const epoch = z
  .union([z.string().regex(/^\d{1,12}$/), z.int().min(0)])
  .transform((seconds) => new Date(Math.min(Number(seconds) * 1000, Date.now())))
