import { Problem } from '@app/shared/api/problem.ts'
import { createServer, type Server } from 'node:http'
import { systemCaller } from '@app/shared/bus/ask.ts'
import { sealToken } from '@app/shared/secrets/account-token.ts'
import { newAccountState } from '@app/test/account-state.ts'
import { insist, testEachStep } from '@app/test/each-step.ts'
import { listen } from '@app/test/listen.ts'
import { png } from '@app/test/png.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect } from 'vitest'
import { redriveCallbacks } from './callbacks/redrive-callbacks.ts'
import { sweepMedia } from './media/delete-media.ts'
import { startFileSweep } from './media/unclaimed-files.ts'
import { oldMessagesSweep } from './messages/delete-old-messages.ts'
import { putSender } from './senders/put-sender.ts'
import { startDispatcher } from './sends/dispatch.ts'
import type { SendBody } from './sends/draft.ts'
import { sendMessage } from './sends/send-message.ts'
import { accept, refuse } from './testing/app.ts'
import { epochNow, statusPart } from './testing/callbacks.ts'
import { type Tenant, type TestSteps, testSteps } from './testing/steps.ts'
import { order } from './testing/templates.ts'
import { uploadPicture } from './testing/upload-picture.ts'

let it: TestSteps
/** Has the file that is sent by link. */
let server: Server
let link: string
/** Passes on the status of a message whose call is not answered yet. */
let tellFirst: (upstreamId: string) => Promise<unknown>
beforeAll(async () => {
  it = await testSteps()
  const asked = new Map<string, number>()
  it.base.respondWith((call, response, n) => {
    if (call.body['status'] === 'read')
      return response.writeHead(200, { 'content-type': 'application/json' }).end('{"success":true}')
    const times = (asked.get(call.messageId) ?? 0) + 1
    asked.set(call.messageId, times)
    if (call.text === 'refused') return refuse(131026)(call, response, n)
    if (call.text === 'later' && times === 1) return refuse(130429, 429)(call, response, n)
    if (call.text === 'unknown') return response.destroy()
    if (call.text === 'told first') return void tellFirst(`wamid.OUT${n}`).then(() => accept(call, response, n))
    accept(call, response, n)
  })
  server = createServer(
    (_request, response) => void response.writeHead(200, { 'content-type': 'image/png' }).end(png()),
  )
  link = `http://127.0.0.1:${await listen(server)}/a.png`
})
afterAll(async () => {
  server.close().closeAllConnections()
  await it.close()
})

const send = (tenant: Tenant, body: object, key: string) =>
  insist(() => {
    const whole = { messaging_product: 'chat', to: `+${tenant.customer}`, ...body } as unknown as SendBody
    const params = { phone_number_id: tenant.phoneNumberId }
    return sendMessage(it.base, { params, query: {}, body: whole }, it.callerOf(tenant, key))
  })
const text = (tenant: Tenant, body: string) => send(tenant, { type: 'text', text: { body } }, body)

const idOf = ({ customer }: Tenant, name: string) => `wamid.${customer}.${name}`
const words = (name: string) => ({ type: 'text', text: { body: name } })
const partOf = (tenant: Tenant, name: string, more: object) => ({
  id: idOf(tenant, name),
  timestamp: String(Number(epochNow()) - 60),
  ...more,
})
const received = (tenant: Tenant, name: string, more: object = words(name)) => {
  const { customer } = tenant
  const contacts = [{ profile: { name: 'Ana' }, wa_id: customer }]
  const messages = [partOf(tenant, name, { from: customer, ...more })]
  return it.numberChange(tenant, 'messages', { contacts, messages })
}
const echoed = (tenant: Tenant, name: string, more: object = words(name)) => {
  const echo = partOf(tenant, name, { from: tenant.state.phone_number?.slice(1), to: tenant.customer, ...more })
  return it.numberChange(tenant, 'smb_message_echoes', { message_echoes: [echo] })
}
const picture = ({ customer }: Tenant) => {
  it.base.files.sent.set(customer, { bytes: png(), mimeType: 'image/png' })
  return { type: 'image', image: { id: customer, mime_type: 'image/png', caption: 'a dot' } }
}
/** A try whose answer was lost was done: the template is under review, and may not be edited again. */
const isDone = (asked: number) => (failure: unknown) => {
  if (asked === 0 || !(failure instanceof Problem && failure.failure === 'template_not_editable')) throw failure
}
const edited = (tenant: Tenant) => {
  const edit = { original_message_id: idOf(tenant, 'a'), message: words('new') }
  return received(tenant, 'e', { type: 'edit', edit })
}
const upstreamIdOf = async ({ organizationId }: Tenant) => {
  const [row] = await it.sql<{ upstreamId: string }[]>`
    select upstream_id from messages where organization_id = ${organizationId}
  `
  return row?.upstreamId ?? ''
}

const upload = (tenant: Tenant) => uploadPicture(it.app, it.sql, tenant.phoneNumberId, it.callerOf(tenant, 'upload'))

const nameOf = ({ customer }: Tenant) => `t${customer}`
const create = (tenant: Tenant) =>
  insist(() => it.create(order(nameOf(tenant)), { ...askingAs(tenant), key: 'create' }))
const askingAs = ({ organizationId, phoneNumberId }: Tenant) => ({ organizationId, phone: phoneNumberId })
const approve = async (tenant: Tenant) => {
  await create(tenant)
  await it.sql`
    update templates set status = 'approved', upstream_status = 'APPROVED' where organization_id = ${tenant.organizationId}
  `
}
const template = (tenant: Tenant) => {
  const parameters = ['a', 'b'].map((one) => ({ type: 'text', text: one }))
  return { name: nameOf(tenant), language: 'en_US', components: [{ type: 'body', parameters }] }
}

const put = (tenant: Tenant, changes: object) => {
  Object.assign(tenant.state, changes, { version: tenant.state.version + 1 })
  const body = { ...tenant.state }
  return insist(() => putSender(it.app, { params: {}, query: {}, body }, systemCaller(tenant.organizationId)))
}

interface Flow {
  prepare?: (tenant: Tenant) => Promise<unknown>
  act: (tenant: Tenant) => Promise<unknown>
}

/** One after the other: the next is asked for when the one before was answered. */
const inTurn =
  (...acts: Flow['act'][]): Flow['act'] =>
  async (tenant) => {
    for (const act of acts) await act(tenant)
  }

const flows: Record<string, Flow> = {
  'two texts': {
    act: inTurn(
      (t) => text(t, 'one'),
      (t) => text(t, 'two'),
    ),
  },
  'a template': { prepare: approve, act: (t) => send(t, { type: 'template', template: template(t) }, 'key') },
  'an uploaded file': {
    act: async (t) => send(t, { type: 'image', image: { id: await upload(t) } }, 'key'),
  },
  'a reaction and a receipt': {
    prepare: (t) => received(t, 'a'),
    act: inTurn(
      (t) => send(t, { type: 'reaction', reaction: { message_id: idOf(t, 'a'), emoji: '👍' } }, 'reaction'),
      (t) => send(t, { status: 'read', message_id: idOf(t, 'a') }, 'receipt'),
    ),
  },
  'a file by link': { act: (t) => send(t, { type: 'image', image: { link } }, 'key') },
  'files that nobody sent, and their sweep': {
    prepare: async (t) => {
      await upload(t)
      await it.sql`update media set sweep_at = now() - interval '1 s' where organization_id = ${t.organizationId}`
    },
    async act() {
      await insist(() => sweepMedia(it.app.sql))
      const sweeping = startFileSweep(it.app)
      await until(async () => {
        expect(await it.sql`select 1 from unclaimed_files where due_at <= now()`).toHaveLength(0)
      })
      await sweeping.stop()
    },
  },
  'organizations that send at once': {
    async prepare(t) {
      t.neighbours = [await it.newTenant(), await it.newTenant()]
    },
    act: (t) => Promise.all([t, ...(t.neighbours ?? [])].map((one, n) => text(one, n === 1 ? 'refused' : 'one'))),
  },
  'two instances': {
    async act(t) {
      const other = startDispatcher({ ...it.base, sql: it.sql })
      const waking = setInterval(other.wake, 20)
      try {
        for (const body of ['one', 'two']) await text(t, body)
        await it.quiet(t)
      } finally {
        clearInterval(waking)
        await other.stop()
      }
    },
  },
  'a refusal, and another': {
    act: inTurn(
      (t) => text(t, 'refused'),
      (t) => text(t, 'then'),
    ),
  },
  'a try that fails, and another': {
    act: inTurn(
      (t) => text(t, 'later'),
      (t) => text(t, 'then'),
    ),
  },
  'an outcome that nobody knows, and another': {
    act: inTurn(
      (t) => text(t, 'unknown'),
      (t) => text(t, 'then'),
    ),
  },
  'a status that comes before the answer': {
    async act(t) {
      tellFirst = (id) => it.numberChange(t, 'messages', { statuses: [statusPart(id, 'delivered')] })
      await text(t, 'told first')
    },
  },
  statuses: {
    prepare: (t) => text(t, 'one'),
    act: async (t) => {
      const id = await upstreamIdOf(t)
      const statuses = ['delivered', 'sent', 'read'].map((status) => statusPart(id, status))
      await it.numberChange(t, 'messages', { statuses })
    },
  },
  'what a customer writes': {
    act: inTurn(
      (t) => received(t, 'a'),
      (t) => received(t, 'b'),
    ),
  },
  'a picture of a customer': { act: (t) => received(t, 'a', picture(t)) },
  'an edit that comes first, and a revocation': {
    act: inTurn(
      edited,
      (t) => received(t, 'a'),
      (t) => received(t, 'r', { type: 'revoke', revoke: { original_message_id: idOf(t, 'a') } }),
    ),
  },
  'a new number of a customer': {
    act: (t) => received(t, 's', { type: 'system', system: { type: 'user_changed_number', wa_id: '15550199999' } }),
  },
  'what the phone app sends': {
    act: inTurn(
      (t) => echoed(t, 'a'),
      (t) => echoed(t, 'b', picture(t)),
    ),
  },
  'old messages': {
    act: (t) => {
      const messages = ['a', 'b'].map((name) => partOf(t, name, { from: t.customer, ...words(name) }))
      return it.numberChange(t, 'history', { history: [{ threads: [{ id: t.customer, messages }] }] })
    },
  },
  'changes of an account and its number': {
    act: inTurn(
      (t) => it.change(t, 'account_update', { event: 'ACCOUNT_VIOLATION', phone_number: t.state.phone_number }),
      (t) => it.numberChange(t, 'messages', { errors: [{ code: 190 }] }),
    ),
  },
  'a template that is made, and its review': {
    act: inTurn(create, (t) =>
      it.change(t, 'message_template_status_update', {
        event: 'APPROVED',
        message_template_name: nameOf(t),
        message_template_language: 'en_US',
      }),
    ),
  },
  'a template that is edited': {
    prepare: approve,
    act: (t) => insist((asked) => it.edit(nameOf(t), { category: 'MARKETING' }, {}, askingAs(t)).catch(isDone(asked))),
  },
  'templates that are synced': {
    prepare: (t) => {
      it.platform.reset()
      it.platform.templates.push({ ...order(nameOf(t)), id: `7${t.customer}`, status: 'APPROVED' })
      return Promise.resolve()
    },
    act: (t) => insist(() => it.sync({ ...askingAs(t), key: 'sync' })),
  },
  'a refusal of what is queued': {
    prepare: (t) => it.sql`update pace set tat = now() + interval '10 min' where grp = ${t.phoneNumberId}`,
    act: inTurn(
      (t) => text(t, 'one'),
      (t) => put(t, { refusal: 'account_not_connected' }),
      (t) => it.sql`update pace set tat = now() where grp = ${t.phoneNumberId}`,
    ),
  },
  'a send that waits beyond its time, and another': {
    prepare: (t) => it.sql`update pace set tat = now() + interval '10 min' where grp = ${t.phoneNumberId}`,
    act: inTurn(
      (t) => text(t, 'late'),
      (t) => it.sql`update sends set expires_at = now() where organization_id = ${t.organizationId}`,
      (t) => text(t, 'then'),
      (t) => it.sql`update pace set tat = now() where grp = ${t.phoneNumberId}`,
    ),
  },
  'messages that are older than they are kept, with their files': {
    async prepare(t) {
      const timestamp = String(Number(epochNow()) - 2 * 24 * 60 * 60)
      await received(t, 'a', { ...words('a'), timestamp })
      await received(t, 'b', { ...picture(t), timestamp })
      await received(t, 'c')
      // Numbers of other flows are swept too: that is no step of this one.
      await it.sql`update senders set retention_days = null`
      await put(t, { retention_days: 1 })
    },
    act: () =>
      insist(async () => {
        const sweep = oldMessagesSweep()
        while ((await sweep(it.app.sql)) > 0);
      }),
  },
  'a number that goes and comes back': {
    act: inTurn(
      (t) => put(t, { attached: false, refusal: 'account_not_connected' }),
      (t) => put(t, { attached: true, refusal: null }),
      (t) => text(t, 'again'),
    ),
  },
  'a number that goes to another organization': {
    prepare: (t) => text(t, 'one'),
    act: async (t) => {
      await put(t, { attached: false, refusal: 'account_not_connected' })
      const other = newAccountState({
        business_account_id: t.businessAccountId,
        phone_number_id: t.phoneNumberId,
        phone_number: t.state.phone_number,
      })
      other.sealed_token = sealToken(it.app.sealKeys, 'token', other.account_id)
      Object.assign(t, { organizationId: other.organization_id, state: other })
      await put(t, {})
      await text(t, 'two')
      await received(t, 'a')
    },
  },
  'callbacks that are worked through again': {
    prepare: inTurn(
      (t) => received(t, 'a'),
      (t) => received(t, 'b', picture(t)),
    ),
    act: (t) => {
      const body = { since: new Date(Date.now() - 1_000).toISOString() }
      return insist(() => redriveCallbacks(it.app, { params: {}, query: {}, body }, systemCaller(t.organizationId)))
    },
  },
}

/** Of a fresh tenant. */
async function begin({ prepare, act }: Flow) {
  const tenant = await it.newTenant()
  await prepare?.(tenant)
  await it.quiet(tenant)
  const all = () => [tenant, ...(tenant.neighbours ?? [])]
  return {
    act: () => act(tenant),
    settle: () => Promise.all(all().map(it.quiet)),
    seen: () => Promise.all(all().map(it.endOf)),
  }
}

testEachStep(
  () => it.steps,
  Object.fromEntries(Object.entries(flows).map(([name, flow]) => [name, { begin: () => begin(flow) }])),
)
