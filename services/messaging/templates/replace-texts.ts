import { z } from 'zod'
import type { Component } from './check-components.ts'

/** One that is null says nothing, as one that is absent. */
const text = z
  .string()
  .nullable()
  .transform((told) => told ?? undefined)
  .optional()

/** The texts of a template as the platform's callback has them: each whole. */
const Texts = z.object({
  message_template_element: text,
  message_template_title: text,
  message_template_footer: text,
  message_template_buttons: z
    .array(
      z.object({
        message_template_button_text: text,
        message_template_button_url: text,
        message_template_button_phone_number: text,
      }),
    )
    .nullish()
    .transform((buttons) => buttons ?? undefined),
})
type Texts = z.output<typeof Texts>

/** The components with the texts of the callback; all else of them stays. */
export function replaceTexts(components: readonly Component[], value: unknown): Component[] {
  const texts = Texts.parse(value)
  const textByType: Readonly<Record<string, string | undefined>> = {
    HEADER: texts.message_template_title,
    BODY: texts.message_template_element,
    FOOTER: texts.message_template_footer,
  }
  return components.map((component) => {
    const type = component.type.toUpperCase()
    if (type === 'BUTTONS') return { ...component, buttons: replaceButtons(component['buttons'], texts) }
    const text = textByType[type]
    return text === undefined ? component : { ...component, text }
  })
}

function replaceButtons(buttons: unknown, { message_template_buttons: told }: Texts): unknown {
  if (!Array.isArray(buttons) || told?.length !== buttons.length) return buttons
  return buttons.map((button: Record<string, unknown>, n) => {
    const { message_template_button_text: text, message_template_button_url: url, ...more } = told[n] ?? {}
    const phoneNumber = more.message_template_button_phone_number
    return {
      ...button,
      ...(text !== undefined && { text }),
      ...(url !== undefined && { url }),
      ...(phoneNumber !== undefined && { phone_number: phoneNumber }),
    }
  })
}
