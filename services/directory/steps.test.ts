import { randomUUID } from 'node:crypto'
import { systemCaller } from '@app/shared/bus/ask.ts'
import { openDatabase } from '@app/shared/database/database.ts'
import { type FailureName, Problem } from '@app/shared/api/problem.ts'
import { newId } from '@app/shared/values/ids.ts'
import { insistTwice, testEachStep } from '@app/test/each-step.ts'
import { startStepProxy, type StepProxy } from '@app/test/step-proxy.ts'
import { afterAll, beforeAll } from 'vitest'
import type { App } from './app.ts'
import { learnRecipients } from './contacts/learn-recipients.ts'
import { noteRead } from './conversations/note-read.ts'
import { detachDeletedLabels } from './labels/detach-deleted-labels.ts'
import { asking, eventsOf, newInbound, newNumber, testDirectory, type TestDirectory } from './testing/app.ts'
import { telling } from './testing/changes.ts'
import { managing, tellTeam } from './testing/managing.ts'

let directory: TestDirectory
let steps: StepProxy
/** Reaches the database through the proxy. */
let app: App
beforeAll(async () => {
  directory = await testDirectory()
  steps = await startStepProxy(directory.url)
  app = directory.newInstance(openDatabase(steps.url, 'directory'))
})
afterAll(async () => {
  await app.sql.end({ timeout: 1 })
  steps.close()
  await directory.drop()
})

/** What an organization has in the end. */
async function seenOf(organizationId: string) {
  const { sql } = directory
  const contacts = await sql`
    select c.phone_number, c.wa_id, c.bsuid, c.name, c.marketing_preference, c.deleted_at is not null as is_gone,
      c.merged_into is not null as is_merged,
      (select array_agg(kind || ' ' || value order by kind, value) from identities
        where organization_id = c.organization_id and contact_id = c.id) as identities,
      (select count(*)::int from contact_labels where organization_id = c.organization_id and contact_id = c.id) as labels
    from contacts c where organization_id = ${organizationId} order by phone_number, id`
  const conversations = await sql`
    select status, assigned_to is not null as is_assigned, unread_count, unread_there, merged_into is not null as is_merged,
      last_message_at is not null as has_message, last_inbound_at is not null as has_inbound,
      (select count(*)::int from conversation_labels l where l.organization_id = v.organization_id and l.conversation_id = v.id) as labels
    from conversations v where organization_id = ${organizationId} order by id`
  const labels =
    await sql`select name, deleted_at is null as is_there from labels where organization_id = ${organizationId}`
  const inbounds = await sql`select status from inbounds where organization_id = ${organizationId}`
  const ids = await sql<{ id: string }[]>`
    select id from contacts where organization_id = ${organizationId} union all
    select id from conversations where organization_id = ${organizationId} order by id`
  return {
    events: (await eventsOf(directory, organizationId)).map(({ type }) => type),
    told: ids.filter(({ id }) => directory.changed.includes(id)).length,
    contacts: [...contacts],
    conversations: [...conversations],
    labels: [...labels],
    inbounds: [...inbounds],
  }
}

let begun = 0

/**
 * A number as it is set up, past the proxy, and as it is asked, through it. Of every second one the other instance is asked
 * again, which is not cut.
 */
async function newAsked() {
  const set = await newNumber(directory.app)
  const { organizationId, phoneNumberId, state } = set
  const asker = { organizationId, phoneNumberId, teamId: state.team_id }
  await tellTeam(directory, organizationId, state.team_id)
  const askedAt = (one: App) => ({
    app: one,
    ...asking(one, organizationId, phoneNumberId),
    ...managing(one, asker),
    ...telling(one, set),
  })
  const through = askedAt(app)
  const again = begun++ % 2 === 0 ? through : askedAt(directory.app)
  function flow(ask: (at: typeof through) => Promise<unknown>) {
    let isCut = false
    const noteCut = (err: unknown) => {
      isCut = true
      throw err
    }
    return {
      act: () => insistTwice((asked) => ask(asked === 0 ? through : again).catch(noteCut)),
      /** What has failed may be recorded, and is told of as well: at least so many are told. */
      async seen(told: number) {
        const seen = await seenOf(organizationId)
        return isCut ? { ...seen, told: Math.min(seen.told, told) } : seen
      },
    }
  }
  return { ...set, set: askedAt(directory.app), flow }
}

interface Flow {
  begin: () => Promise<{ act: () => Promise<unknown>; seen: (told: number) => Promise<unknown> }>
  events: string[]
  /** How many of what is there in the end were told of as changed. */
  told: number
}

/** A second time there is nothing left to do. */
const unless = (failure: FailureName) => (err: unknown) => {
  if (!(err instanceof Problem && err.failure === failure)) throw err
}
const silently = () => {}
const once = (asked: Promise<unknown>) => asked.then(silently, unless('resource_not_found'))

const [phone, waId, at] = ['+15550123456', '15550123456', '2026-03-01T12:00:00.000Z'] as const

/** Known by its number, and by a user id to somebody else. */
async function twoContacts() {
  const number = await newAsked()
  const one = await number.set.open({ phone_number: phone })
  const other = await number.set.inbound({ bsuid: 'US.1', profile_name: 'Ana' })
  return { ...number, one, other }
}

const flows: Record<string, Flow> = {
  'create a contact': {
    events: ['contact.created'],
    told: 0,
    async begin() {
      const { flow } = await newAsked()
      const key = randomUUID()
      return flow(async (through) => (await through.create({ phone_number: phone, name: 'Ana' }, key)).data)
    },
  },
  'change a contact': {
    events: ['contact.created', 'contact.updated'],
    told: 1,
    async begin() {
      const { set, flow } = await newAsked()
      const { contact } = await set.open({ phone_number: phone })
      return flow((through) => through.update(contact.id, { name: 'Ana', metadata: { a: 1 } }))
    },
  },
  'delete a contact': {
    events: ['contact.created'],
    told: 1,
    async begin() {
      const { set, flow } = await newAsked()
      const { contact } = await set.open({ phone_number: phone })
      return flow((through) => once(through.remove(contact.id)))
    },
  },
  'attach a label': {
    events: ['contact.created', 'contact.updated'],
    told: 0,
    async begin() {
      const { set, flow } = await newAsked()
      const { contact } = await set.open({ phone_number: phone })
      const { id } = await set.label('VIP')
      const key = randomUUID()
      return flow(async (through) => (await through.attach(contact.id, id, key)).data)
    },
  },
  'detach a label': {
    events: ['contact.created', 'contact.updated', 'contact.updated'],
    told: 0,
    async begin() {
      const { set, flow } = await newAsked()
      const { contact } = await set.open({ phone_number: phone })
      const { id } = await set.label('VIP')
      await set.attach(contact.id, id)
      return flow((through) => once(through.detach(contact.id, id)))
    },
  },
  'label contacts': {
    events: [
      'contact.created',
      'contact.created',
      'contact.created',
      'contact.updated',
      'contact.updated',
      'contact.updated',
    ],
    told: 0,
    async begin() {
      const { set, flow } = await newAsked()
      const ids = await set.many(3)
      const { id } = await set.label('VIP')
      return flow((through) => through.bulk(ids, id, 'attach'))
    },
  },
  'create a label': {
    events: [],
    told: 0,
    async begin() {
      const { state, flow } = await newAsked()
      const key = randomUUID()
      const body = { name: 'VIP', team_id: state.team_id }
      return flow(async (through) => (await through.createLabel(body, key)).data)
    },
  },
  'change a label': {
    events: [],
    told: 0,
    async begin() {
      const { set, flow } = await newAsked()
      const { id } = await set.label('VIP')
      return flow((through) => through.updateLabel(id, { name: 'Gold' }))
    },
  },
  'delete a label': {
    events: ['contact.created', 'contact.updated', 'contact.updated'],
    told: 0,
    async begin() {
      const { set, flow } = await newAsked()
      const { contact, conversation } = await set.open({ phone_number: phone })
      const { id } = await set.label('VIP')
      await set.attach(contact.id, id)
      await set.attachToConversation(conversation.id, id)
      return flow(async (through) => {
        await once(through.deleteLabel(id))
        while ((await detachDeletedLabels(through.app)) > 0);
      })
    },
  },
  'assign and close a conversation': {
    events: ['contact.created', 'conversation.assigned', 'conversation.closed'],
    told: 1,
    async begin() {
      const { set, flow } = await newAsked()
      const { conversation } = await set.open({ phone_number: phone })
      const assigned_to = newId('usr')
      return flow(async (through) => {
        const { updated_at: _, ...rest } = await through.updateConversation(conversation.id, {
          assigned_to,
          status: 'resolved',
        })
        return rest
      })
    },
  },
  'label a conversation': {
    events: ['contact.created'],
    told: 0,
    async begin() {
      const { set, flow } = await newAsked()
      const { conversation } = await set.open({ phone_number: phone })
      const { id } = await set.label('VIP')
      return flow(async (through) => (await through.attachToConversation(conversation.id, id)).data)
    },
  },
  'open a conversation': {
    events: ['contact.created'],
    told: 0,
    async begin() {
      const { flow } = await newAsked()
      return flow((through) => through.open({ phone_number: phone }))
    },
  },
  'a message of somebody new': {
    events: ['contact.created'],
    told: 0,
    async begin() {
      const { flow } = await newAsked()
      const message = { ...newInbound(), wa_id: waId, bsuid: 'US.1', profile_name: 'Ana' }
      return flow((through) => through.inbound(message))
    },
  },
  'a message that tells a name, in a closed conversation': {
    events: ['contact.created', 'conversation.closed', 'contact.updated'],
    told: 2,
    async begin() {
      const { set, flow } = await newAsked()
      const { conversation } = await set.open({ phone_number: phone })
      await set.updateConversation(conversation.id, { status: 'resolved' })
      const message = { ...newInbound(), wa_id: waId, bsuid: 'US.1', profile_name: 'Ana' }
      return flow((through) => through.inbound(message))
    },
  },
  'a message that shows two to be one': {
    events: [
      'contact.created',
      'contact.created',
      'conversation.closed',
      'contact.identity_updated',
      'contact.updated',
    ],
    told: 2,
    async begin() {
      const { flow } = await twoContacts()
      const message = { ...newInbound(), wa_id: waId, bsuid: 'US.1' }
      return flow((through) => through.inbound(message))
    },
  },
  'a user id that changes': {
    events: ['contact.created', 'contact.identity_updated'],
    told: 1,
    async begin() {
      const { set, flow } = await newAsked()
      await set.inbound({ wa_id: waId, bsuid: 'US.1' })
      return flow((through) =>
        through.change('wamid.1', { wa_id: waId, bsuid: 'US.1' }, { wa_id: '15550123457', bsuid: 'US.2' }, at),
      )
    },
  },
  'a user id that is another contact’s': {
    events: [
      'contact.created',
      'contact.created',
      'conversation.closed',
      'contact.identity_updated',
      'contact.updated',
    ],
    told: 2,
    async begin() {
      const { flow } = await twoContacts()
      return flow((through) => through.change('wamid.1', { wa_id: waId }, { wa_id: waId, bsuid: 'US.1' }, at))
    },
  },
  'an address book': {
    events: ['contact.created'],
    told: 2,
    async begin() {
      const { set, flow } = await newAsked()
      await set.open({ phone_number: phone })
      const carl = { wa_id: '15550123458', name: 'Carl', action: 'add' as const, at }
      await set.contacts([carl])
      const book = [
        { wa_id: waId, name: 'Ana', action: 'add' as const, at },
        { wa_id: '15550123457', name: 'Bo', action: 'add' as const, at },
        { ...carl, action: 'remove' as const, at: '2026-03-01T12:00:01.000Z' },
      ]
      return flow((through) => through.contacts(book).then(silently))
    },
  },
  'threads of the phone': {
    events: ['contact.created'],
    told: 0,
    async begin() {
      const { set, flow } = await newAsked()
      await set.open({ phone_number: phone })
      const threads = [
        { wa_id: waId, bsuid: null, last_message_at: at },
        { wa_id: '15550123457', bsuid: null, last_message_at: at },
      ]
      return flow((through) => through.threads(threads))
    },
  },
  'a word on marketing': {
    events: ['contact.created'],
    told: 0,
    async begin() {
      const { flow } = await newAsked()
      return flow((through) => through.preferences([{ wa_id: waId, bsuid: null, value: 'resume', at }]).then(silently))
    },
  },
  'the stop of a stranger, who is written to then': {
    events: ['contact.created'],
    told: 0,
    async begin() {
      const { flow } = await newAsked()
      return flow(async (through) => {
        await through.preferences([{ wa_id: waId, bsuid: null, value: 'stop', at }])
        await through.open({ phone_number: phone })
      })
    },
  },
  'a read receipt': {
    events: ['contact.created'],
    told: 0,
    async begin() {
      const { set, organizationId, flow } = await newAsked()
      const { conversation } = await set.inbound({ wa_id: waId })
      await set.inbound({ wa_id: waId })
      const body = { event_id: newId('evt'), conversation_id: conversation.id, read: 1 }
      return flow((through) => noteRead(through.app, { params: {}, query: {}, body }, systemCaller(organizationId)))
    },
  },
  'a number that the platform writes in another way': {
    events: ['contact.created', 'conversation.closed', 'contact.identity_updated', 'contact.updated'],
    told: 2,
    async begin() {
      const { set, organizationId, phoneNumberId, flow } = await newAsked()
      await set.open({ phone_number: '+5511987654321' })
      await set.contacts([{ wa_id: '551187654321', name: 'Ana', action: 'add', at }])
      await set.inbound({ wa_id: '551187654321' })
      const names = { phoneNumber: '+5511987654321', waId: '551187654321', sentAt: new Date(at) }
      return flow((through) =>
        learnRecipients(through.app, [{ organizationId, phoneNumberId, traceparent: '', ...names }]),
      )
    },
  },
}

const stepped = ({ begin, ...expected }: Flow) => ({
  async begin() {
    const { act, seen } = await begin()
    return { act, seen: () => seen(expected.told) }
  },
  expected,
})

testEachStep(() => steps, Object.fromEntries(Object.entries(flows).map(([name, flow]) => [name, stepped(flow)])))
