import { z } from 'zod'
import { rpc } from '../api/contract.ts'
import { idOf } from '../values/ids.ts'
import { pageQuery } from '../api/page.ts'
import { text, time } from './fields.ts'

const color = z.enum([
  'gray', 'red', 'orange', 'amber', 'yellow', 'lime', 'green', 'emerald', 'teal', 'sky', 'blue', 'violet', 'pink',
]).meta({ id: 'LabelColor' }) // prettier-ignore

const name = text(1, 50)

export const Label = z
  .object({
    id: idOf('lbl'),
    object: z.literal('label'),
    name: z.string(),
    color,
    team_id: idOf('team'),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Label' })

const exampleLabel = {
  id: 'lbl_01JQ8Z6V0A7XJ2N5T9WQ3RBKCE',
  object: 'label',
  name: 'VIP',
  color: 'amber',
  team_id: 'team_01JQ8Z6V0A7XJ2N5T9WQ3RBKCF',
  created_at: '2026-03-01T12:00:00.000Z',
  updated_at: '2026-03-01T12:00:00.000Z',
}

const labelParams = z.object({ id: idOf('lbl') })

export const listLabels = rpc({
  subject: 'rpc.directory.list-labels',
  summary: 'List the labels',
  description: 'Newest first.',
  http: { method: 'GET', path: '/labels', tag: 'Labels' },
  query: z.object({ ...pageQuery, team_id: idOf('team').optional() }),
  answer: Label,
  list: true,
  example: { answer: exampleLabel },
})

export const createLabel = rpc({
  subject: 'rpc.directory.create-label',
  summary: 'Create a label',
  description:
    'For a team: `team_id` may be left out by an organization that has only one. Two labels of a team differ in more than the case of their names.',
  http: { method: 'POST', path: '/labels', tag: 'Labels', status: 201 },
  body: z.object({ name, color: color.default('gray'), team_id: idOf('team').optional() }),
  answer: Label,
  errors: ['label_already_exists'],
  example: { body: { name: 'VIP', color: 'amber' }, answer: exampleLabel },
})

export const getLabel = rpc({
  subject: 'rpc.directory.get-label',
  summary: 'Get a label',
  http: { method: 'GET', path: '/labels/{id}', tag: 'Labels' },
  params: labelParams,
  answer: Label,
  errors: ['resource_not_found'],
  example: { answer: exampleLabel },
})

export const updateLabel = rpc({
  subject: 'rpc.directory.update-label',
  summary: "Change a label's name or colour",
  http: { method: 'PATCH', path: '/labels/{id}', tag: 'Labels' },
  params: labelParams,
  body: z.object({ name: name.optional(), color: color.optional() }),
  answer: Label,
  errors: ['resource_not_found', 'label_already_exists'],
  example: { body: { color: 'amber' }, answer: exampleLabel },
})

export const deleteLabel = rpc({
  subject: 'rpc.directory.delete-label',
  summary: 'Delete a label, and detach it from everything',
  description: 'At once; that the contacts changed is told of afterwards, of some 50 a second.',
  http: { method: 'DELETE', path: '/labels/{id}', tag: 'Labels' },
  params: labelParams,
  answer: z
    .object({ id: idOf('lbl'), object: z.literal('label'), deleted: z.literal(true) })
    .meta({ id: 'DeletedLabel' }),
  errors: ['resource_not_found'],
  example: { answer: { id: exampleLabel.id, object: 'label', deleted: true } },
})
