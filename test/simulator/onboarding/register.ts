import type { App } from '../app.ts'
import { badParameter, GraphError } from '../graph/graph-error.ts'
import type { GraphRequest } from '../graph/graph-request.ts'
import { optionalText, requiredText, requiredWord } from '../graph/params.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'
import { wordsOf } from '../words.ts'

/** `POST /{v}/{phone_number_id}/register`: from then on the number sends. Where it has no PIN yet, this one becomes it. */
export async function register(
  { numbers, registrations, dataFile, settings }: App,
  number: PhoneNumber,
  input: GraphRequest,
) {
  requiredWord(input.message, 'messaging_product', [wordsOf(settings.current).product])
  const pin = requiredText(input.message, 'pin')
  if (!/^\d{6}$/.test(pin)) throw badParameter('Param pin must be a 6-digit string.')
  const region = optionalText(input.message, 'data_localization_region')
  if (region !== undefined && !/^[A-Z]{2}$/.test(region))
    throw badParameter('Param data_localization_region must be an ISO 3166 code.')
  const { phoneNumberId } = number
  if (number.isInBusinessApp)
    throw badParameter('The number is used in the business app, and cannot be registered by the API.')
  registrations.countCall(phoneNumberId)
  registrations.mustHaveRested(phoneNumberId)
  if (number.status === 'UNVERIFIED') throw new GraphError(133_006)
  registrations.checkPin(phoneNumberId, number.pin === null || number.pin === pin)
  numbers.change(phoneNumberId, { pin, status: 'CONNECTED' })
  await dataFile.save()
  return { success: true }
}

/** `POST /{v}/{phone_number_id}/deregister`: the number keeps its PIN and sends no more. */
export async function deregister({ numbers, registrations, dataFile }: App, number: PhoneNumber) {
  registrations.countCall(number.phoneNumberId)
  if (number.status === 'PENDING' || number.status === 'UNVERIFIED') throw new GraphError(133_010)
  registrations.deregistered(number.phoneNumberId)
  numbers.change(number.phoneNumberId, { status: 'PENDING' })
  await dataFile.save()
  return { success: true }
}
