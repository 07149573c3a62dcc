import type { App } from '../app.ts'
import { tellField } from '../callbacks/tell-field.ts'
import type { Category, Quality, Template } from './template.ts'
import type { z } from 'zod'

const dayS = 24 * 3_600

const named = ({ id, name, language }: Template) => ({
  message_template_id: Number(id),
  message_template_name: name,
  message_template_language: language,
})

/** Keeps a template's new status and tells it. */
export function tellStatus(app: App, template: Template) {
  const { businessAccountId, status, rejectedReason: reason, category } = app.templates.put(template)
  const now = Math.floor(Date.now() / 1_000)
  tellField(app, businessAccountId, 'message_template_status_update', {
    event: status,
    ...named(template),
    reason,
    message_template_category: category,
    ...(status === 'DISABLED' && { disable_info: { disable_date: now + dayS } }),
    ...(status === 'PAUSED' && {
      other_info: { title: 'FIRST_PAUSE', description: 'The template has low quality and is paused for 3 hours.' },
    }),
    ...(status === 'REJECTED' && {
      rejection_info: { reason: 'The template is not well formed.', recommendation: 'Change it and submit it again.' },
    }),
  })
  app.dataFile.saveSoon()
}

/** Keeps a template's new category and tells it. */
export function tellCategory(app: App, template: Template, category: Category) {
  app.templates.put({ ...template, category })
  tellField(app, template.businessAccountId, 'template_category_update', {
    ...named(template),
    previous_category: template.category,
    new_category: category,
  })
  app.dataFile.saveSoon()
}

/** Keeps a template's new quality and tells it. */
export function tellQuality(app: App, template: Template, quality: z.output<typeof Quality>) {
  app.templates.put({ ...template, quality })
  tellField(app, template.businessAccountId, 'message_template_quality_update', {
    previous_quality_score: template.quality,
    new_quality_score: quality,
    ...named(template),
  })
  app.dataFile.saveSoon()
}

/** Keeps a template's new body and tells the whole text. */
export function tellComponents(app: App, template: Template, text: string) {
  const components = template.components.map((component) =>
    component['type'] === 'BODY' ? { ...component, text } : component,
  )
  app.templates.put({ ...template, components })
  const textOf = (type: string) => components.find((component) => component['type'] === type)?.['text']
  tellField(app, template.businessAccountId, 'message_template_components_update', {
    ...named(template),
    message_template_element: text,
    message_template_title: textOf('HEADER'),
    message_template_footer: textOf('FOOTER'),
  })
  app.dataFile.saveSoon()
}
