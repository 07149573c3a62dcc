import { setTimeout as sleep } from 'node:timers/promises'
import { openConversation } from '@app/shared/contracts/directory.ts'
import { expect } from 'vitest'
import { until } from '../client.ts'
import type { Overheard } from './overheard.ts'

/** Longer than directory's word is taken while what it tells of changes is not heard. */
const longMs = 10_500

export async function askDirectoryOnce(own: Overheard) {
  const { base_url: base, api_key: key, phone_number_id: number, demo_contact: contact } = own.stack.read()
  const body = JSON.stringify({
    messaging_product: 'chat',
    to: contact.phone_number,
    type: 'text',
    text: { body: 'Hello' },
  })
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  // A gateway that another test has just frozen says that it is late, and to try again.
  const send = () =>
    until(async () =>
      expect((await fetch(`${base}/${number}/messages`, { method: 'POST', headers, body })).status).toBe(200),
    )
  const isOfContact = ({ subject, text }: { subject: string; text: string }) =>
    subject === openConversation.subject && text.includes(contact.phone_number)
  const asked = async () => (await own.bus()).heard.filter(isOfContact).length

  await sleep(longMs)
  await send()
  const before = await asked()
  expect(before).toBeGreaterThan(0)
  await sleep(longMs)
  await send()
  expect(await asked()).toBe(before)
}
