import { z } from 'zod'
import { event, rpc } from '../api/contract.ts'
import { idOf } from '../values/ids.ts'
import { pageQuery } from '../api/page.ts'
import {
  bsuid,
  email,
  labelReference,
  openEnum,
  phoneNumberId,
  phoneNumberInput,
  phoneParams,
  text,
  time,
} from './fields.ts'

const maxMetadataKeys = 64
const maxMetadataBytes = 16 * 1024

const metadata = z
  .record(z.string(), z.unknown())
  .refine((value) => Object.keys(value).length <= maxMetadataKeys, `must have at most ${maxMetadataKeys} keys`)
  .refine((value) => Buffer.byteLength(JSON.stringify(value)) <= maxMetadataBytes, 'must have at most 16 KiB of JSON')
  .meta({ description: 'Free-form, at most 64 keys and 16 KiB of JSON.' })

export const Contact = z
  .object({
    id: idOf('ctc'),
    object: z.literal('contact'),
    phone_number: z.string().nullable().meta({ description: 'E.164; null for a contact known by bsuid alone.' }),
    bsuid: z.string().nullable(),
    parent_bsuid: z.string().nullable(),
    username: z.string().nullable(),
    name: z.string().nullable(),
    email: z.string().nullable(),
    metadata: z.record(z.string(), z.unknown()).nullable(),
    chat_account: z
      .object({
        phone_number: z.string().nullable(),
        phone_number_id: z.string().nullable(),
        customer: z
          .object({ id: idOf('cus'), name: z.string() })
          .meta({ id: 'CustomerSummary' })
          .nullable(),
      })
      .meta({ id: 'ContactChatAccount' }),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Contact' })

const exampleContact = {
  id: 'ctc_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  object: 'contact',
  phone_number: '+15550123456',
  bsuid: null,
  parent_bsuid: null,
  username: null,
  name: 'Ana',
  email: null,
  metadata: null,
  chat_account: { phone_number: '+15550001111', phone_number_id: '106540352242922', customer: null },
  created_at: '2026-03-01T12:00:00.000Z',
  updated_at: '2026-03-01T12:00:00.000Z',
}

const exampleLabelId = 'lbl_01JQ8Z6V0A7XJ2N5T9WQ3RBKCE'

const contactParams = phoneParams.extend({ id: idOf('ctc') })

export const listContacts = rpc({
  subject: 'rpc.directory.list-contacts',
  summary: 'List the contacts of a number',
  description:
    'Newest first. `phone_number` finds by the number as given or as the platform writes it. `search` finds what stands anywhere in name, e-mail, username or number, without regard to case; one or two characters find words that begin with them. Filters add up.',
  http: { method: 'GET', path: '/{phone_number_id}/contacts', tag: 'Contacts' },
  params: phoneParams,
  query: z.object({
    ...pageQuery,
    phone_number: phoneNumberInput.optional().meta({ description: 'The whole number, with or without `+`.' }),
    bsuid: bsuid.optional(),
    search: text(1, 200).optional().meta({ description: 'A piece of name, e-mail, username or number.' }),
    label_id: idOf('lbl').optional().meta({ description: 'Only contacts that have this label.' }),
  }),
  answer: Contact,
  list: true,
  errors: ['resource_not_found', 'invalid_phone_number'],
  example: { answer: exampleContact },
})

export const createContact = rpc({
  subject: 'rpc.directory.create-contact',
  summary: 'Create a contact',
  description:
    'At least one of `phone_number` and `bsuid`. A person whom the number knows already is answered with 200, unchanged.',
  http: { method: 'POST', path: '/{phone_number_id}/contacts', tag: 'Contacts', status: 201, otherStatus: 200 },
  params: phoneParams,
  body: z
    .object({
      phone_number: phoneNumberInput.optional(),
      bsuid: bsuid.optional(),
      username: text(1, 100).optional(),
      name: text(1, 200).optional(),
      email: email.nullable().optional(),
      metadata: metadata.optional(),
    })
    .refine((body) => body.phone_number !== undefined || body.bsuid !== undefined, {
      path: ['phone_number'],
      message: 'this or bsuid is required',
    }),
  answer: Contact,
  errors: ['resource_not_found', 'invalid_phone_number', 'contact_identity_conflict'],
  example: { body: { phone_number: '+1 555 012 3456', name: 'Ana' }, answer: exampleContact },
})

export const getContact = rpc({
  subject: 'rpc.directory.get-contact',
  summary: 'Get a contact',
  http: { method: 'GET', path: '/{phone_number_id}/contacts/{id}', tag: 'Contacts' },
  params: contactParams,
  answer: Contact,
  errors: ['resource_not_found'],
  example: { answer: exampleContact },
})

export const updateContact = rpc({
  subject: 'rpc.directory.update-contact',
  summary: "Change a contact's name, e-mail or metadata",
  description: '`metadata` is replaced as a whole; null clears it. The phone number is what a contact is, and stays.',
  http: { method: 'PATCH', path: '/{phone_number_id}/contacts/{id}', tag: 'Contacts' },
  params: contactParams,
  body: z.object({
    name: text(1, 200).nullable().optional(),
    email: email.optional(),
    metadata: metadata.nullable().optional(),
    phone_number: z.never({ error: 'cannot be changed' }).optional(),
  }),
  answer: Contact,
  errors: ['resource_not_found'],
  example: { body: { name: 'Ana', metadata: { plan: 'gold' } }, answer: exampleContact },
})

export const deleteContact = rpc({
  subject: 'rpc.directory.delete-contact',
  summary: 'Delete a contact',
  description: 'Its conversation stays readable. Should the person write again, that is a new contact.',
  http: { method: 'DELETE', path: '/{phone_number_id}/contacts/{id}', tag: 'Contacts' },
  params: contactParams,
  answer: z
    .object({ id: idOf('ctc'), object: z.literal('contact'), deleted: z.literal(true) })
    .meta({ id: 'DeletedContact' }),
  errors: ['resource_not_found'],
  example: { answer: { id: exampleContact.id, object: 'contact', deleted: true } },
})

const LabelAttachment = z
  .object({ contact_id: idOf('ctc'), label_id: idOf('lbl'), attached: z.boolean() })
  .meta({ id: 'ContactLabel' })

export const attachContactLabel = rpc({
  subject: 'rpc.directory.attach-contact-label',
  summary: 'Attach a label to a contact',
  description: 'Of the same team. Attaching it twice changes nothing.',
  http: { method: 'POST', path: '/{phone_number_id}/contacts/{id}/labels', tag: 'Contacts' },
  params: contactParams,
  body: labelReference,
  answer: LabelAttachment,
  errors: ['resource_not_found'],
  example: {
    body: { label_id: exampleLabelId },
    answer: { contact_id: exampleContact.id, label_id: exampleLabelId, attached: true },
  },
})

export const detachContactLabel = rpc({
  subject: 'rpc.directory.detach-contact-label',
  summary: 'Detach a label from a contact',
  http: { method: 'DELETE', path: '/{phone_number_id}/contacts/{id}/labels/{label_id}', tag: 'Contacts' },
  params: contactParams.extend({ label_id: idOf('lbl') }),
  answer: LabelAttachment,
  errors: ['resource_not_found'],
  example: { answer: { contact_id: exampleContact.id, label_id: exampleLabelId, attached: false } },
})

export const bulkLabelContacts = rpc({
  subject: 'rpc.directory.bulk-label-contacts',
  summary: 'Attach a label to many contacts, or detach it',
  description:
    "At once or not at all. Each different id is counted once: `applied` are the number's own contacts, changed or already so; `skipped_cross_org` is whatever is not a contact of this number; `skipped_team_mismatch` are its contacts when the label is another team's.",
  http: { method: 'POST', path: '/{phone_number_id}/contacts/bulk_label', tag: 'Contacts' },
  params: phoneParams,
  body: z.object({
    contact_ids: z.array(z.string()).max(1000),
    label_id: idOf('lbl'),
    operation: z.enum(['attach', 'detach']),
  }),
  answer: z
    .object({ applied: z.int(), skipped_cross_org: z.int(), skipped_team_mismatch: z.int() })
    .meta({ id: 'BulkLabelResult' }),
  errors: ['resource_not_found'],
  example: {
    body: { contact_ids: [exampleContact.id], label_id: exampleLabelId, operation: 'attach' },
    answer: { applied: 1, skipped_cross_org: 0, skipped_team_mismatch: 0 },
  },
})

/** A contact as its events show it. */
const ContactFacts = z
  .object({
    id: idOf('ctc'),
    object: z.literal('contact'),
    phone_number: z.string().nullable(),
    name: z.string().nullable(),
    email: z.string().nullable(),
    metadata: z.record(z.string(), z.unknown()).nullable(),
    phone_number_id: phoneNumberId,
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'ContactRecord' })

export const contactCreated = event({
  subject: 'event.directory.contact-created',
  summary: 'A contact row was inserted',
  webhook: { type: 'contact.created', source: 'svc' },
  data: z.object({ contact: ContactFacts }),
})

export const contactUpdated = event({
  subject: 'event.directory.contact-updated',
  summary: "A contact's name, e-mail, metadata or labels are others than before",
  webhook: { type: 'contact.updated', source: 'svc' },
  data: z.object({
    contact: ContactFacts.extend({
      changed_fields: z.array(openEnum(['name', 'email', 'metadata', 'labels'])).min(1),
    }),
  }),
})

const identity = z
  .object({
    bsuid: z.string().nullable(),
    parent_bsuid: z.string().nullable(),
    phone_number: z.string().nullable(),
  })
  .meta({ id: 'ContactIdentity' })

export const contactIdentityUpdated = event({
  subject: 'event.directory.contact-identity-updated',
  summary: 'A contact is known by another business-scoped user id or number, or two contacts were found to be one',
  webhook: { type: 'contact.identity_updated', source: 'svc' },
  data: z.object({
    contact: z.object({
      id: idOf('ctc'),
      object: z.literal('contact'),
      phone_number: z.string().nullable(),
      name: z.string().nullable(),
      phone_number_id: phoneNumberId,
    }),
    previous: identity,
    current: identity,
    changed_at: time,
  }),
})
