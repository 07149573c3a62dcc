import { z } from 'zod'

/** From here on a time is in milliseconds: in seconds it would be thousands of years away. */
const firstMs = 1e12

/** The platform's time, epoch seconds as text or number; never in the future. Milliseconds are read as what they are. */
export const epoch = z.union([z.string().regex(/^\d{1,13}$/), z.int().min(0)]).transform((time) => {
  const ms = Number(time) < firstMs ? Number(time) * 1000 : Number(time)
  return new Date(Math.min(ms, Date.now()))
})

/** The same time in the platform's own form, epoch seconds as text. */
export const secondsOf = (time: unknown): string => {
  const number = Number(time)
  return String(number < firstMs ? number : Math.floor(number / 1000))
}
