import { expect, test } from 'vitest'
import { check } from './check.ts'
import { type Call, type Delivery, type History, newHistory, type Reading } from './history.ts'

const reading = (messageId: string, status: string, at: number, code: string | null = null): Reading => ({
  messageId,
  status,
  code,
  startedAt: at,
  endedAt: at + 1,
})
const send = (id: string, at: number) => ({
  id,
  tenant: 'org_a',
  phone: '111',
  conversation: 'cnv_1',
  startedAt: at,
  acceptedAt: at + 1,
})
const call: Call = {
  tenant: 'org_a',
  method: 'POST',
  path: '/111/messages',
  key: 'k1',
  startedAt: 10,
  endedAt: 11,
  status: 200,
  text: '{"data":{"id":"msg_1"}}',
  retryAfter: null,
  misfit: null,
}
const came = (subscription: string, eventId: string, type: string, raw: string): Delivery => ({
  subscription,
  id: `wbd ${eventId} ${subscription}`,
  eventId,
  type,
  raw,
})
const sentOf = (subscription: string, id: string) =>
  came(subscription, `${id}:sent`, 'message.sent', `{"id":"${id}:sent"}`)
const updatedOf = (subscription: string) => came(subscription, 'evt_1', 'contact.updated', '{"name":"apple 7"}')
const madeOf = (subscription: string) => came(subscription, 'evt_c1', 'customer.created', '{"name":"Ann"}')
const renamedOf = (subscription: string) => came(subscription, 'evt_c2', 'customer.updated', '{"name":"Anna"}')
const closedOf = (subscription: string, eventId: string) =>
  came(subscription, eventId, 'conversation.closed', '{"id":"cnv_1"}')
const events = ['message.sent', 'contact.updated', 'conversation.closed', 'customer.created', 'customer.updated']
const subscription = { tenant: 'org_a', events, phones: null, activeFrom: 0 }

/** Three sends: two went out, one is unknown; a contact was changed, a conversation closed twice, a customer made and changed; two subscriptions heard of all of it. */
function lawful(): History {
  const history = newHistory()
  history.tenants = [
    { id: 'org_a', own: ['org_a', 'apple'] },
    { id: 'org_b', own: ['org_b', 'banana'] },
  ]
  history.subscriptions = [
    { ...subscription, id: 'wbs_1' },
    { ...subscription, id: 'wbs_2' },
    { ...subscription, id: 'wbs_3', events: ['message.sent'], activeFrom: 25 },
  ]
  history.calls = [call, { ...call, startedAt: 12 }, { ...call, key: null, status: 503, retryAfter: '1' }]
  history.accepted = [send('msg_1', 10), send('msg_2', 20), send('msg_3', 30)]
  history.upstream = ['msg_1', 'msg_3'].map((messageId) => ({
    id: `wamid.${messageId}`,
    messageId,
    phone: '111',
    at: 0,
  }))
  history.readings = [reading('msg_1', 'pending', 11), reading('msg_1', 'sent', 14)]
  history.endings = new Map([
    ['msg_1', reading('msg_1', 'read', 90)],
    ['msg_2', reading('msg_2', 'failed', 90, 'delivery_unknown')],
    ['msg_3', reading('msg_3', 'read', 90)],
  ])
  history.deliveries = [
    ...['wbs_1', 'wbs_2'].flatMap((id) => [sentOf(id, 'msg_1'), sentOf(id, 'msg_3'), updatedOf(id), madeOf(id)]),
    ...['wbs_1', 'wbs_2'].map(renamedOf),
    ...['wbs_1', 'wbs_2'].flatMap((id) => [closedOf(id, 'evt_2'), closedOf(id, 'evt_3'), closedOf(id, 'evt_3')]),
    madeOf('wbs_1'),
    sentOf('wbs_3', 'msg_3'),
    sentOf('wbs_1', 'msg_1'),
  ]
  const expected = { tenant: 'org_a', phone: '111' }
  history.expected = [
    { ...expected, type: 'message.sent', eventId: 'msg_1:sent', notBefore: 10 },
    { ...expected, type: 'message.sent', eventId: 'msg_3:sent', notBefore: 30 },
    { ...expected, type: 'contact.updated', word: 'apple 7', notBefore: 40 },
    { ...expected, type: 'customer.created', word: '"Ann"', notBefore: 50, phone: null, line: 'cus_1' },
    { ...expected, type: 'customer.updated', word: '"Anna"', notBefore: 60, phone: null, line: 'cus_1' },
  ]
  const outbound = [
    { id: 'msg_1', status: 'read' },
    { id: 'msg_2', status: 'failed' },
    { id: 'msg_3', status: 'read' },
  ]
  const unread = [{ person: '+1', shown: 2, written: 2 }]
  history.ledgers = [
    { phone: '111', outbound, inboundPosted: ['w1', 'w2'], inboundListed: ['w2', 'w1'], media: [], unread },
  ]
  history.files = [{ messageId: 'w1', posted: 'hash', served: 'hash' }]
  history.tallies = [{ tenant: 'org_a', phone: '111', type: 'conversation.closed', word: '"cnv_1"', times: 2 }]
  history.shelves = [{ name: 'apple lists', made: ['cus_1 Anna'], listed: ['cus_1 Anna'] }]
  return history
}

test('finds nothing in a history in which every law holds', () => {
  expect(check(lawful())).toEqual([])
})

const breaches: Array<[string, (history: History) => unknown, string[]]> = [
  [
    'a send that went out twice',
    ({ upstream }) => upstream.push({ id: 'wamid.again', messageId: 'msg_1', phone: '111', at: 0 }),
    [
      'one ending: msg_1 went out 2 times',
      'in order: msg_1 after msg_3 in cnv_1',
      'counters: 111: 3 accepted, 3 sent, 1 failed',
    ],
  ],
  [
    'a send that nobody accepted',
    ({ upstream }) => upstream.push({ id: 'wamid.x', messageId: 'msg_x', phone: '222', at: 0 }),
    ['one ending: msg_x went out, and nobody sent it'],
  ],
  [
    'two sends under one id',
    ({ accepted }) => accepted.push(send('msg_1', 50)),
    [
      'one ending: msg_1 answered two sends',
      'in order: msg_3 after msg_1 in cnv_1',
      'counters: 111: 4 accepted, 2 sent, 1 failed',
    ],
  ],
  [
    'a send that was lost',
    ({ upstream }) => upstream.splice(0, 1),
    ['one ending: msg_1 never went out and ended read', 'counters: 111: 3 accepted, 1 sent, 1 failed'],
  ],
  [
    'a send that went out and is called failed',
    ({ endings }) => endings.set('msg_1', reading('msg_1', 'failed', 90, 'delivery_unknown')),
    ['one ending: msg_1 went out and ended failed (delivery_unknown)', 'rising statuses: msg_1 was sent, then failed'],
  ],
  [
    'a send that never ends',
    ({ endings }) => endings.set('msg_2', reading('msg_2', 'pending', 90)),
    ['one ending: msg_2 never went out and ended pending'],
  ],
  [
    'a failure that says nothing',
    ({ endings }) => endings.set('msg_2', reading('msg_2', 'failed', 90)),
    ['one ending: msg_2 never went out and ended failed'],
  ],
  ['two sends in the wrong order', ({ upstream }) => upstream.reverse(), ['in order: msg_1 after msg_3 in cnv_1']],
  [
    'an event that never came',
    (history) => void (history.deliveries = history.deliveries.filter(({ eventId }) => eventId !== 'evt_1')),
    ['wbs_1', 'wbs_2'].map((id) => `every event: contact.updated apple 7 never came to ${id}`),
  ],
  [
    'an event that came to one subscription alone',
    ({ deliveries }) => deliveries.push(came('wbs_1', 'evt_8', 'contact.updated', '{}')),
    ['every event: evt_8 came to wbs_1 and not to wbs_2'],
  ],
  [
    'an event that nobody asked for',
    ({ deliveries }) => deliveries.push(came('wbs_3', 'evt_5', 'contact.created', '{}')),
    ['every event: contact.created evt_5 came to wbs_3, which did not ask for it'],
  ],
  [
    'an event of a number that was not asked for',
    ({ subscriptions }) =>
      subscriptions.push({ ...subscription, id: 'wbs_3', events: ['message.sent'], phones: ['222'] }),
    ['every event: message.sent msg_3:sent came to wbs_3, which did not ask for it'],
  ],
  [
    'an event whose repeat says something else',
    ({ deliveries }) => deliveries.push({ ...sentOf('wbs_1', 'msg_1'), raw: '{"other":1}' }),
    ['one event id: msg_1:sent came with different contents'],
  ],
  [
    'an event whose repeat has another id',
    ({ deliveries }) => {
      for (const id of ['wbs_1', 'wbs_2']) {
        deliveries.push({ ...updatedOf(id), id: `wbd evt_9 ${id}`, eventId: 'evt_9' })
      }
    },
    ['one event id: contact.updated apple 7 came as evt_1 and evt_9'],
  ],
  [
    'an event that came as two deliveries',
    ({ deliveries }) => deliveries.push({ ...updatedOf('wbs_1'), id: 'wbd again' }),
    ['told once: evt_1 came to wbs_1 as wbd evt_1 wbs_1 and wbd again'],
  ],
  [
    'a closing that was told twice',
    ({ deliveries }) => deliveries.push(closedOf('wbs_1', 'evt_7'), closedOf('wbs_2', 'evt_7')),
    ['wbs_1', 'wbs_2'].map((id) => `as often: conversation.closed "cnv_1" came 3 times to ${id}, and happened 2 times`),
  ],
  [
    "a customer's events in the wrong order",
    (history) =>
      void (history.deliveries = [
        renamedOf('wbs_2'),
        ...history.deliveries.filter(({ eventId }) => eventId !== 'evt_c2'),
        renamedOf('wbs_1'),
      ]),
    ['in line: customer.created "Ann" came after customer.updated "Anna" to wbs_2'],
  ],
  [
    'a customer that was made twice, and one that is not as it was left',
    ({ shelves }) => void shelves[0]?.listed.splice(0, 1, 'cus_1 Ann', 'cus_2 Anna'),
    [
      'counters: apple lists no cus_1 Anna',
      'counters: apple lists cus_1 Ann, which nobody made',
      'counters: apple lists cus_2 Anna, which nobody made',
    ],
  ],
  [
    'a status that goes back',
    ({ readings }) => readings.push(reading('msg_1', 'pending', 20)),
    ['rising statuses: msg_1 was sent, then pending'],
  ],
  [
    "another's word in an answer",
    ({ calls }) => calls.push({ ...call, key: null, text: 'banana' }),
    ['own bytes: POST /111/messages shows banana to org_a'],
  ],
  [
    "another's word in a delivery",
    ({ deliveries }) => deliveries.push(came('wbs_3', 'e', 'message.sent', 'banana')),
    ['own bytes: message.sent shows banana to org_a'],
  ],
  ['a message in no list', ({ ledgers }) => ledgers[0]?.outbound.splice(0, 1), ['counters: 111 lists no msg_1']],
  [
    'a message that nobody made',
    ({ ledgers }) => ledgers[0]?.outbound.push({ id: 'msg_9', status: 'read' }),
    ['counters: 111 lists msg_9, which nobody made'],
  ],
  [
    'an inbound message twice',
    ({ ledgers }) => ledgers[0]?.inboundListed.push('w1'),
    ['counters: 111 lists as received something twice'],
  ],
  [
    'a wrong count of unread ones',
    ({ ledgers }) => ledgers[0]?.unread.push({ person: '+2', shown: 3, written: 2 }),
    ['counters: 111: 3 of +2 are unread, and 2 were written'],
  ],
  [
    'a file that is served with other bytes',
    ({ files }) => files.push({ messageId: 'w2', posted: 'hash', served: 'other' }),
    ['same file: the file of w2 was hash and is other'],
  ],
  [
    'a file that is not served',
    ({ files }) => files.push({ messageId: 'w2', posted: 'hash', served: null }),
    ['same file: the file of w2 was hash and is not served'],
  ],
  [
    'a 500',
    ({ calls }) => calls.push({ ...call, key: null, status: 500, text: '{}' }),
    ['plain answers: POST /111/messages: 500 {}'],
  ],
  [
    'a 503 that does not say when',
    ({ calls }) => calls.push({ ...call, key: null, status: 503, text: '{}' }),
    ['plain answers: POST /111/messages: 503 {} without Retry-After'],
  ],
  [
    'an answer that is not in the OpenAPI',
    ({ calls }) => calls.push({ ...call, key: null, text: '{}', misfit: 'no data' }),
    ['plain answers: POST /111/messages: 200 {} (no data)'],
  ],
  ['a complaint of a client', ({ complaints }) => complaints.push('no answer'), ['no complaints: no answer']],
  [
    'a key with two answers',
    ({ calls }) => calls.push({ ...call, text: '{"data":{"id":"msg_2"}}' }),
    ['plain answers: the key org_a k1 got different answers'],
  ],
]

test.each(breaches)('finds %s', (_what, breakIt, sentences) => {
  const history = lawful()
  breakIt(history)
  expect(check(history)).toEqual(sentences)
})

test('two sends at the same time may arrive in either order, and two readings at the same time show either', () => {
  const history = lawful()
  history.accepted = [{ ...send('msg_1', 10), acceptedAt: 40 }, send('msg_2', 20), send('msg_3', 30)]
  history.upstream.reverse()
  history.readings.push({ ...reading('msg_1', 'pending', 13), endedAt: 16 })
  expect(check(history)).toEqual([])
})
