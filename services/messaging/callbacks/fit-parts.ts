import type { z } from 'zod'
import type { Core } from '../app.ts'
import type { Change } from './changes.ts'

/** The parts of a change that have the shape; the others hold up none of them, and are told of in the log. */
export function fitParts<S extends z.ZodType>(
  { log }: Core,
  change: Change,
  shape: S,
  parts: unknown[],
): z.output<S>[] {
  const fit = parts.flatMap((part) => {
    const { success, data } = shape.safeParse(part)
    return success ? [data] : []
  })
  if (fit.length < parts.length) {
    const { organizationId: organization, phoneNumberId: number, field } = change
    log.warn(
      { organization, number, field, parts: parts.length - fit.length },
      'parts of a callback with an unknown shape were left out',
    )
  }
  return fit
}
