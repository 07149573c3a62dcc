import { afterAll, beforeAll, expect, test } from 'vitest'
import { client, type Json, newPhone, until } from './client.ts'
import { newTenant } from './tenant.ts'

const { control } = client()

beforeAll(() => control('/control/settings', { require_proof: true }))
afterAll(() => control('/control/settings', { require_proof: false }))

test('every call to the platform proves that it is our app’s, so that the app may demand it', async () => {
  const tenant = await newTenant()
  const phone = await tenant.connect()
  const name = 'proven'
  await tenant.ok('POST', `/${phone}/templates`, {
    name,
    language: 'en_US',
    category: 'UTILITY',
    components: [{ type: 'BODY', text: 'Proven.' }],
  })
  await until(async () =>
    expect(await tenant.ok('GET', `/${phone}/templates/${name}`)).toMatchObject({ status: 'approved' }),
  )
  expect(await tenant.ok('POST', `/${phone}/templates/sync`, {})).toMatchObject({ synced: 1 })
  const to = newPhone()
  await tenant.openWindow(phone, to)
  const { id: file } = await control('/control/media', { mime_type: 'image/png', data: 'iVBORw0KGgo=' })
  const { id: inbound } = await control('/control/inbound', {
    phone_number_id: phone,
    message: { from: to.replace('+', ''), type: 'image', image: { id: file } },
  })
  const sent = await tenant.ok('POST', `/${phone}/messages`, {
    messaging_product: 'chat',
    to,
    type: 'template',
    template: { name, language: 'en_US' },
  })
  await until(async () => {
    expect(await tenant.ok('GET', `/${phone}/messages/${sent.id}`)).toMatchObject({ status: 'read' })
    const messages: Json[] = await tenant.ok('GET', `/${phone}/messages?direction=inbound`)
    expect(messages.find(({ message_id }) => message_id === inbound)?.media_url).toContain('/media/')
  })
  await tenant.ok('POST', `/${phone}/messages`, { status: 'read', message_id: inbound })
})
