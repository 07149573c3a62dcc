import { expect, test } from 'vitest'
import type { PhoneNumber } from '../numbers/numbers.ts'
import { callbackBody, type ItemUpdate, type Update } from './update.ts'

const words = { product: 'whatsapp', object: 'whatsapp_business_account', personId: 'wa_id' } as const

const numberOf = (phoneNumberId: string, businessAccountId: string): PhoneNumber => ({
  phoneNumberId,
  businessAccountId,
  displayDigits: `1${phoneNumberId}`,
  verifiedName: 'Business',
  status: 'CONNECTED',
  accessToken: 'EAA',
  pin: null,
  isInBusinessApp: false,
  throughputPerSecond: null,
})

const update = (number: PhoneNumber, kind: ItemUpdate['kind'], id: number, contact?: string): Update => ({
  number,
  kind,
  item: `{"id":${id}}`,
  contact,
})

test('gathers updates under their account, their number and their kind, each contact once', () => {
  const [ana, ben] = ['{"wa_id":"1"}', '{"wa_id":"2"}']
  const [first, second, third] = [numberOf('10', 'A'), numberOf('20', 'A'), numberOf('30', 'B')]
  const updates = [
    update(first, 'statuses', 1, ana),
    update(third, 'messages', 2, ben),
    update(first, 'messages', 3, ana),
    update(second, 'statuses', 4),
    update(first, 'statuses', 5, ana),
    update(first, 'statuses', 6, ben),
  ]
  const value = (id: string, rest: object) => ({
    field: 'messages',
    value: {
      messaging_product: 'whatsapp',
      metadata: { display_phone_number: `1${id}`, phone_number_id: id },
      ...rest,
    },
  })
  expect(JSON.parse(callbackBody(updates, words))).toEqual({
    object: 'whatsapp_business_account',
    entry: [
      {
        id: 'A',
        changes: [
          value('10', { contacts: [{ wa_id: '1' }, { wa_id: '2' }], statuses: [{ id: 1 }, { id: 5 }, { id: 6 }] }),
          value('10', { contacts: [{ wa_id: '1' }], messages: [{ id: 3 }] }),
          value('20', { statuses: [{ id: 4 }] }),
        ],
      },
      { id: 'B', changes: [value('30', { contacts: [{ wa_id: '2' }], messages: [{ id: 2 }] })] },
    ],
  })
})
