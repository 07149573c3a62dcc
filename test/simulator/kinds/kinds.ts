import type { App } from '../app.ts'
import { BadField, parseValue } from '../control/parse.ts'
import { z } from 'zod'
import { accountReview, accountUpdate, field, nameUpdate, quality, security } from './about-accounts.ts'
import { echo, edit, error, played, revoke, status, system, unsupported } from './about-messages.ts'
import { contactSync, history, historyFiles, userIdUpdate, userPreferences } from './about-people.ts'
import { templateCategory, templateComponents, templateQuality, templateStatus } from './about-templates.ts'
import { envelope, type Kind } from './kind.ts'

/** Every kind of callback that can be asked for by its name. */
const kinds: Record<string, Kind> = {
  account_review: accountReview,
  account_update: accountUpdate,
  contact_sync: contactSync,
  echo,
  edit,
  error,
  field,
  history,
  history_files: historyFiles,
  name_update: nameUpdate,
  played,
  quality,
  revoke,
  security,
  status,
  system,
  template_category: templateCategory,
  template_components: templateComponents,
  template_quality: templateQuality,
  template_status: templateStatus,
  unsupported,
  user_id_update: userIdUpdate,
  user_preferences: userPreferences,
}

/** Sends what the body asks for. @throws BadField */
export function sendKind(app: App, body: object) {
  const { kind: name, phone_number_id: phoneNumberId } = parseValue(z.object(envelope), body)
  const send = Object.hasOwn(kinds, name) ? kinds[name] : undefined
  if (!send) throw new BadField('kind', `must be one of ${Object.keys(kinds).join(', ')}`)
  const number = app.numbers.find(phoneNumberId)
  if (!number) throw new BadField('phone_number_id', 'No number of this id: POST /control/numbers makes one.')
  return send(app, number, body)
}
