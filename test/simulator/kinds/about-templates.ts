import { z } from 'zod'
import type { App } from '../app.ts'
import { BadField } from '../control/parse.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'
import { tellCategory, tellComponents, tellQuality, tellStatus } from '../templates/tell.ts'
import { Category, Quality, TemplateStatus } from '../templates/template.ts'
import { kind } from './kind.ts'

function find({ templates }: App, { businessAccountId }: PhoneNumber, id: string) {
  const template = templates.find(id)
  if (template?.businessAccountId !== businessAccountId)
    throw new BadField('template_id', 'The account of this number has no template of this id.')
  return template
}

const which = { template_id: z.string() }

/** A template's status changes; its sends feel it. */
export const templateStatus = kind(
  { ...which, status: TemplateStatus, reason: z.string().default('NONE') },
  (app, number, { template_id: id, status, reason }) =>
    tellStatus(app, { ...find(app, number, id), status, rejectedReason: reason }),
)

/** A template is moved to another category. */
export const templateCategory = kind({ ...which, category: Category }, (app, number, { template_id: id, category }) =>
  tellCategory(app, find(app, number, id), category),
)

export const templateQuality = kind({ ...which, quality: Quality }, (app, number, { template_id: id, quality }) =>
  tellQuality(app, find(app, number, id), quality),
)

/** A template's text is another now, all of it. */
export const templateComponents = kind(
  { ...which, text: z.string().min(1) },
  (app, number, { template_id: id, text }) => tellComponents(app, find(app, number, id), text),
)
