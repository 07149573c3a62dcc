import type { Caller } from '@app/shared/api/contract.ts'
import { openDatabase } from '@app/shared/database/database.ts'
import { sealToken } from '@app/shared/secrets/account-token.ts'
import { newId } from '@app/shared/values/ids.ts'
import { pack } from '@app/shared/values/packed.ts'
import { type Account, newAccountState } from '@app/test/account-state.ts'
import { insist } from '@app/test/each-step.ts'
import { steppedService } from '@app/test/service.ts'
import { until } from '@app/test/until.ts'
import { expect } from 'vitest'
import { acceptCallbacks } from '../callbacks/accept-callbacks.ts'
import { storeSender } from '../senders/put-sender.ts'
import { serveDirectoryChanges } from './directory-changes.ts'
import { endOf } from './steps-end.ts'
import { testTemplates } from './templates.ts'

/** An organization with one number, and a customer that nobody else has. */
export interface Tenant {
  organizationId: string
  businessAccountId: string
  phoneNumberId: string
  customer: string
  state: Account
  /** Others that act at the same time. */
  neighbours?: Tenant[]
}

export type TestSteps = Awaited<ReturnType<typeof testSteps>>

/** Shorter than any lease: a connection that was lost is no reason to wait for one. */
const quietWithinMs = 20_000

/** Messaging behind the proxy of steps; `sql` goes past it. */
export async function testSteps() {
  const service = await steppedService('messaging')
  const templates = await testTemplates(service)
  const { app, base } = templates
  const directory = await serveDirectoryChanges(app)
  const sql = openDatabase(service.databaseUrl, 'messaging', { max: 2 })
  let count = 0

  async function newTenant(): Promise<Tenant> {
    const n = String(++count).padStart(4, '0')
    const state = newAccountState({
      business_account_id: `2000${n}`,
      phone_number_id: `1000000${n}`,
      phone_number: `+1555100${n}`,
    })
    state.sealed_token = sealToken(app.sealKeys, 'token', state.account_id)
    await sql.begin((tx) => storeSender(tx, app.sealKeys, state))
    return {
      organizationId: state.organization_id,
      businessAccountId: state.business_account_id,
      phoneNumberId: state.phone_number_id,
      customer: `1555200${n}`,
      state,
    }
  }

  const callerOf = ({ organizationId }: Pick<Tenant, 'organizationId'>, key: string): Caller => ({
    organizationId,
    keyId: newId('key'),
    requestId: newId('req'),
    deadline: performance.now() + 20_000,
    traceparent: '',
    idempotency: { key, fingerprint: key },
  })

  /** A callback of one change, as the gateway passes it on. */
  const change = ({ businessAccountId }: Tenant, field: string, value: object) =>
    insist(() => {
      const entry = [{ id: businessAccountId, time: Math.floor(Date.now() / 1000), changes: [{ field, value }] }]
      const body = Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }))
      return acceptCallbacks(app, { params: {}, query: {}, body: pack([body]) }, callerOf({ organizationId: '' }, ''))
    })

  const numberChange = (tenant: Tenant, field: string, value: object) => {
    const display = tenant.state.phone_number?.slice(1)
    const metadata = { display_phone_number: display, phone_number_id: tenant.phoneNumberId }
    return change(tenant, field, { messaging_product: 'whatsapp', metadata, ...value })
  }

  /** Until nothing of the tenant waits any more; what has a time of its own has it now. */
  const quiet = ({ organizationId, phoneNumberId }: Tenant) =>
    until(async () => {
      await sql`update sends set parked_until = now() where organization_id = ${organizationId} and parked_until > now()`
      await sql`update media_copies set due_at = now() where organization_id = ${organizationId} and begun_at is null`
      for (const table of ['send_lanes', 'media_lanes', 'callback_lanes']) {
        const { count } = await sql`
          update ${sql(table)} set due_at = now()
          where grp in (${organizationId}, ${phoneNumberId}) and due_at > now() and held_until < now()
        `
        if (count > 0 && table === 'send_lanes') base.dispatcher.wake()
      }
      const waiting = await sql`
        select 'send' as what from sends where organization_id = ${organizationId}
        union all select 'item' from callback_items i join callback_lanes l on l.id = i.lane where l.grp = ${organizationId}
        union all select 'copy' from media_copies where organization_id = ${organizationId}
        union all select 'event' from outbox where starts_with(id, ${organizationId}) and published_at is null
      `
      expect([...waiting]).toEqual([])
    }, quietWithinMs)

  return {
    ...templates,
    steps: service.steps,
    sql,
    newTenant,
    callerOf,
    change,
    numberChange,
    quiet,
    endOf: (tenant: Tenant) => endOf(sql, base, tenant),
    async close() {
      await directory.stop()
      await sql.end()
      await templates.close()
      service.steps.close()
    },
  }
}
