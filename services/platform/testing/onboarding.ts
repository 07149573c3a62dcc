import { randomInt } from 'node:crypto'
import { systemCaller } from '@app/shared/bus/ask.ts'
import type { Input } from '@app/shared/api/contract.ts'
import type { completeSetup as Complete } from '@app/shared/contracts/onboarding.ts'
import { beginSetup } from '../onboarding/begin-setup.ts'
import { createSetupLink } from '../setup-links/create-setup-link.ts'
import { ask, newCustomer, newOrganization, newPhoneNumberId, type TestApp } from './app.ts'

type Dialog = Partial<Input<typeof Complete>['body']>

/** An organization's customer with a link, and what the platform has for it: a business account with one number. */
export async function openSetup(test: TestApp, redirects: object = {}, known: { organizationId?: string } = {}) {
  const organizationId = known.organizationId ?? (await newOrganization(test.app))
  const customerId = await newCustomer(test.app, organizationId)
  const asOwner = { params: { id: customerId }, caller: systemCaller(organizationId) }
  const link = await ask(test.app, createSetupLink, redirects, asOwner)
  const token = link.setup_url.slice(link.setup_url.lastIndexOf('/') + 1)
  return { organizationId, customerId, asOwner, linkId: link.id, token, ...haveNumber(test) }
}

type Opened = Awaited<ReturnType<typeof openSetup>>

interface Shown {
  status?: string
  is_on_biz_app?: boolean
}

/** Lets the platform have a business account with these numbers, and take every code for its token. */
export function haveNumber({ upstream: { answers } }: TestApp, shown: Shown = {}, phoneNumberId = newPhoneNumberId()) {
  const businessAccountId = `9${randomInt(1e9).toString().padStart(9, '0')}`
  showNumbers({ answers }, businessAccountId, [{ phoneNumberId, ...shown }])
  answers.set('/oauth/access_token', { body: { access_token: 'EAAbought', token_type: 'bearer' } })
  answers.set(`/${businessAccountId}/subscribed_apps`, { body: { success: true } })
  return { businessAccountId, phoneNumberId }
}

export function showNumbers(
  { answers }: Pick<TestApp['upstream'], 'answers'>,
  businessAccountId: string,
  numbers: Array<Shown & { phoneNumberId: string }>,
) {
  const data = numbers.map(({ phoneNumberId, ...shown }) => ({
    id: phoneNumberId,
    display_phone_number: '+1 555-078-3881',
    verified_name: 'Bakery Bruno',
    status: 'PENDING',
    ...shown,
  }))
  answers.set(`/${businessAccountId}/phone_numbers`, { body: { data } })
}

export const beginAt = async (test: TestApp, { token, linkId }: Pick<Opened, 'token' | 'linkId'>) =>
  (await ask(test.app, beginSetup, { token, setup_link_id: linkId })).state

/** What the page hands over when the dialog is over. */
export const dialogOf = (
  { token, businessAccountId, phoneNumberId }: Pick<Opened, 'token' | 'businessAccountId' | 'phoneNumberId'>,
  state: string,
  more: Dialog = {},
): Input<typeof Complete>['body'] => ({
  token,
  state,
  code: 'AQcode',
  business_account_id: businessAccountId,
  phone_number_id: phoneNumberId,
  event: 'number',
  ...more,
})
