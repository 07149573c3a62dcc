import { Problem } from '@app/shared/api/problem.ts'
import { UpstreamRefusal } from '../upstream/ask-upstream.ts'
import type { Component } from './check-components.ts'

/** The name exists in this language, or its deletion is still held (the platform's subcodes of code 100). */
const taken = new Set([2388023, 2388024])

export const isTaken = (err: unknown): boolean =>
  err instanceof UpstreamRefusal && err.subcode !== undefined && taken.has(err.subcode)

/** The component that a subcode is about: 2388293 and 2388299 are of variables, which the body has. */
const componentBySubcode: Readonly<Record<number, string>> = {
  2388047: 'HEADER',
  2388072: 'BODY',
  2388073: 'FOOTER',
  2388293: 'BODY',
  2388299: 'BODY',
}

/**
 * The platform's refusal of something about a template, for our caller: in the platform's words, with the field where it is known.
 * Without `components` nothing was submitted, and no field of the request can be at fault.
 */
export function refusalOf(err: unknown, components?: readonly Component[]): unknown {
  if (!(err instanceof UpstreamRefusal)) return err
  if (isTaken(err)) return new Problem('template_already_exists', { param: 'name', cause: err })
  if (err.isPassing) return new Problem('upstream_unavailable', { cause: err })
  const message = `The upstream platform refused the request: ${err.sentence}`
  if (err.isAboutToken || components === undefined) return new Problem('upstream_refused', { message, cause: err })
  const type = err.subcode === undefined ? undefined : componentBySubcode[err.subcode]
  const n = components.findIndex((component) => String(component.type).toUpperCase() === type)
  return new Problem('invalid_field_value', { message, param: n === -1 ? undefined : `components[${n}]`, cause: err })
}
