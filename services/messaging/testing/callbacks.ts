import type { App } from '../app.ts'
import { splitCallback } from '../callbacks/split.ts'
import { phoneNumberId } from './app.ts'

/** The business account of the test's number. */
export const businessAccountId = '102290129340398'

export const metadata = { display_phone_number: '15550001111', phone_number_id: phoneNumberId }

/** Now, as the platform writes it: epoch seconds. */
export const epochNow = () => String(Math.floor(Date.now() / 1000))

/** What the platform posts, as if the gateway had passed it on. */
export function platformOf(app: App) {
  async function post(body: unknown) {
    const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
    await app.acceptCallback({ body: bytes, split: splitCallback(bytes), deadline: Infinity })
    app.callbacks.wake()
  }
  const change = (field: string, value: unknown, id = businessAccountId) =>
    post({ object: 'whatsapp_business_account', entry: [{ id, changes: [{ field, value }] }] })
  return {
    post,
    /** One callback with as many changes of the field `messages`, each of the test's number. */
    messages: (...values: object[]) =>
      post({
        object: 'whatsapp_business_account',
        entry: [
          {
            id: businessAccountId,
            changes: values.map((value) => ({
              field: 'messages',
              value: { messaging_product: 'whatsapp', metadata, ...value },
            })),
          },
        ],
      }),
    /** A change of the field; `value` as it is. */
    change,
    /** Changes of fields in one callback, at the platform's time: epoch seconds. */
    changesAt: (time: number | undefined, ...changes: { field: string; value: object }[]) =>
      post({ object: 'whatsapp_business_account', entry: [{ id: businessAccountId, time, changes }] }),
    /** A change of the field that names the test's number. */
    numberChange: (field: string, value: object) =>
      change(field, { messaging_product: 'whatsapp', metadata, ...value }),
  }
}

export const statusPart = (id: string, status: string, more = {}) => ({
  id,
  status,
  timestamp: epochNow(),
  recipient_id: '15550123456',
  ...more,
})

export const inboundValue = (id: string, body: string, more = {}) => ({
  contacts: [{ profile: { name: 'Ana' }, wa_id: '15550123456' }],
  messages: [{ from: '15550123456', id, timestamp: epochNow(), type: 'text', text: { body }, ...more }],
})
