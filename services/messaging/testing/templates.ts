import type { Caller, Handler, Rpc, WholeAnswer } from '@app/shared/api/contract.ts'
import * as contracts from '@app/shared/contracts/templates.ts'
import { newId } from '@app/shared/values/ids.ts'
import type { TestService } from '@app/test/service.ts'
import type { App } from '../app.ts'
import { createTemplate } from '../templates/create-template.ts'
import { editTemplate } from '../templates/edit-template.ts'
import { getTemplate } from '../templates/get-template.ts'
import { listTemplates } from '../templates/list-templates.ts'
import { type TemplateToSend, resolveTemplate } from '../templates/resolve-template.ts'
import { syncTemplates } from '../templates/sync-templates.ts'
import { phoneNumberId, testMessaging, upstreamAt } from './app.ts'
import { businessAccountId, platformOf } from './callbacks.ts'
import { startTemplatePlatform } from './template-platform.ts'

/** A template of our API, or a whole sync's counts. */
interface Shown {
  id: string
  name: string
  language: string
  status: string
  category: string
  content: string
  variables: string[]
  components: Array<Record<string, unknown>>
  provider_template_id: string | null
  created: number
  updated: number
  synced: number
}

export interface Asked {
  status: number
  replayed: boolean
  data: Shown
}

interface Options {
  key?: string
  organizationId?: string
  phone?: string
  deadlineMs?: number
}

/** Messaging with a platform that has templates; the operations are asked as the gateway would. */
export async function testTemplates(given?: TestService) {
  const [base, platform] = await Promise.all([testMessaging(given), startTemplatePlatform()])
  const upstream = upstreamAt(platform.url)
  const app: App = { ...base, upstream }
  const [sender] = await base.sql<{ organizationId: string }[]>`select organization_id from senders`
  const organizationId = sender?.organizationId ?? ''

  return {
    app,
    base,
    platform,
    organizationId,
    callbacks: platformOf(app),
    ...askFor(app, organizationId),
    async close() {
      await upstream.close()
      await base.close()
      platform.stop()
    },
  }
}

/** The operations, as the gateway asks them for an organization's number. */
export function askFor(app: App, organizationId: string, phone = phoneNumberId) {
  const callerOf = ({ key, organizationId: other, deadlineMs = 20_000 }: Options, fingerprint: string): Caller => ({
    organizationId: other ?? organizationId,
    keyId: newId('key'),
    requestId: newId('req'),
    deadline: performance.now() + deadlineMs,
    traceparent: '',
    idempotency: key === undefined ? undefined : { key, fingerprint },
  })

  async function ask<C extends Rpc>(
    contract: C,
    handler: Handler<App, C>,
    input: { params?: object; query?: object; body?: unknown },
    options: Options = {},
  ): Promise<Asked> {
    const params = { phone_number_id: options.phone ?? phone, ...input.params }
    const parsed = {
      params: contract.params.parse(params),
      query: contract.query.parse(input.query ?? {}),
      body: contract.body.parse(input.body),
    } as Parameters<typeof handler>[1]
    const caller = callerOf(options, JSON.stringify([contract.subject, input]))
    const answer = await handler(app, parsed, caller)
    if (!isWhole(answer)) return { status: 200, replayed: false, data: answer as unknown as Shown }
    const { data } = JSON.parse(Buffer.from(answer.body).toString()) as { data: Shown }
    return { status: answer.status, replayed: answer.replayed, data }
  }

  return {
    create: (body: object, options?: Options) => ask(contracts.createTemplate, createTemplate, { body }, options),
    edit: (name: string, body: object, query: object = {}, options?: Options) =>
      ask(contracts.editTemplate, editTemplate, { params: { name }, query, body }, options),
    sync: (options?: Options) => ask(contracts.syncTemplates, syncTemplates, { body: {} }, options),
    get: async (name: string, query: object = {}, options?: Options) =>
      (await ask(contracts.getTemplate, getTemplate, { params: { name }, query }, options)).data,
    list: async (query: object = {}, options?: Options) => {
      const { data } = await ask(contracts.listTemplates, listTemplates, { query }, options)
      return data as unknown as { data: Shown[]; has_more: boolean; next_cursor: string | null }
    },
    resolve: (template: TemplateToSend, options: Options = {}) =>
      resolveTemplate(
        app,
        { organizationId: options.organizationId ?? organizationId, phoneNumberId: phone },
        template,
        callerOf(options, ''),
      ),
  }
}

const isWhole = (answer: unknown): answer is WholeAnswer =>
  typeof answer === 'object' && answer !== null && 'whole' in answer

export type TestTemplates = Awaited<ReturnType<typeof testTemplates>>

/**
 * The organization's templates once more: at another organization with the same business account, and in another business
 * account of its own. Answers what stands there whenever it is asked.
 */
export async function copyElsewhere({ app: { sql }, organizationId }: TestTemplates) {
  const places = [
    { organization: newId('org'), account: businessAccountId },
    { organization: organizationId, account: '77' },
  ]
  for (const { organization, account } of places) {
    await sql`
      insert into templates
      select (jsonb_populate_record(t, jsonb_build_object('organization_id', ${organization}::text,
        'business_account_id', ${account}::text, 'id', t.id || ${account}::text))).*
      from templates t where organization_id = ${organizationId} and business_account_id = ${businessAccountId}
    `
  }
  return () => sql`
    select * from templates where organization_id <> ${organizationId} or business_account_id <> ${businessAccountId}
    order by id, organization_id
  `
}

/** What the create of a simple template takes. */
export const order = (name: string, more: object = {}) => ({
  name,
  language: 'en_US',
  category: 'UTILITY',
  components: [{ type: 'BODY', text: 'Hi {{1}}, order {{2}} shipped.', example: { body_text: [['Ana', 'A1']] } }],
  ...more,
})
