import type { Component } from './check-components.ts'
import { componentOf } from './templates.ts'

type Part = Readonly<Record<string, unknown>>

/** What a reader sees of a component or a button; samples are kept otherwise than they were given. */
const texts = ['text', 'url', 'add_security_recommendation', 'code_expiration_minutes']

/**
 * Whether the platform's template says what was submitted, in whatever order and with whatever samples. What was left to the
 * platform, such as the texts of a template for codes, is its own.
 */
export const isSameContent = (submitted: readonly Component[], theirs: readonly Component[]): boolean =>
  submitted.length === theirs.length &&
  submitted.every((component) => {
    const other = componentOf(theirs, component.type.toUpperCase())
    return other !== undefined && isSamePart(component, other) && areSameButtons(component['buttons'], other['buttons'])
  })

const isSamePart = (submitted: Part, theirs: Part) =>
  texts.every((key) => submitted[key] === undefined || submitted[key] === theirs[key]) &&
  upper(submitted['format']) === upper(theirs['format']) &&
  digits(submitted['phone_number']) === digits(theirs['phone_number'])

function areSameButtons(submitted: unknown, theirs: unknown) {
  if (!Array.isArray(submitted) || !Array.isArray(theirs)) return submitted === theirs
  return (
    submitted.length === theirs.length &&
    submitted.every((button: Part, n) => {
      const other = theirs[n] as Part
      // The platform makes a link of it.
      if (upper(button['type']) === 'OTP') return true
      return upper(button['type']) === upper(other['type']) && isSamePart(button, other)
    })
  )
}

const upper = (word: unknown) => (typeof word === 'string' ? word.toUpperCase() : '')
const digits = (phone: unknown) => (typeof phone === 'string' ? phone.replaceAll(/\D/g, '') : '')
