import type { Component } from './check-components.ts'

const texts = [
  'type',
  'format',
  'text',
  'url',
  'phone_number',
  'add_security_recommendation',
  'code_expiration_minutes',
]

/** Of a component or a button what a reader sees; samples are kept otherwise than they were given. */
function essenceOf(part: Readonly<Record<string, unknown>>): unknown {
  const own = texts.map((key) => {
    const value = part[key]
    return typeof value === 'string' && (key === 'type' || key === 'format') ? value.toUpperCase() : (value ?? null)
  })
  const buttons = part['buttons']
  return Array.isArray(buttons) ? [own, buttons.map((button: Record<string, unknown>) => essenceOf(button))] : [own]
}

/** Whether two templates say the same, in whatever order and with whatever samples. */
export const isSameContent = (a: readonly Component[], b: readonly Component[]): boolean => digestOf(a) === digestOf(b)

const digestOf = (components: readonly Component[]) =>
  JSON.stringify(components.map((component) => JSON.stringify(essenceOf(component))).toSorted())
