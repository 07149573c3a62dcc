import type { App } from '../app.ts'
import { badParameter } from '../graph/graph-error.ts'
import { optionalText, type Param } from '../graph/params.ts'

/** `POST /{v}/{business_account_id}/subscribed_apps`: our app hears of the account; as often as it is called. */
export async function subscribeApp({ subscriptions, dataFile }: App, businessAccountId: string, body: Param) {
  if (optionalText(body, 'override_callback_uri') !== undefined)
    throw badParameter('Param override_callback_uri is not spoken here: there is one receiver.')
  subscriptions.add(businessAccountId)
  await dataFile.save()
  return { success: true }
}

/** `GET`: the apps that hear of the account, of which there is one at most. */
export function listSubscribedApps({ subscriptions, options }: App, businessAccountId: string) {
  if (!subscriptions.has(businessAccountId)) return { data: [] }
  const link = `https://www.facebook.com/games/?app_id=${options.appId}`
  return { data: [{ whatsapp_business_api_data: { id: options.appId, name: 'Simulated App', link } }] }
}

/** `DELETE`: our app hears of the account no more. */
export async function unsubscribeApp({ subscriptions, dataFile }: App, businessAccountId: string) {
  subscriptions.delete(businessAccountId)
  await dataFile.save()
  return { success: true }
}
