import type { Handler } from '@app/shared/api/contract.ts'
import { syncTemplates as contract } from '@app/shared/contracts/templates.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { storedAnswer } from '@app/shared/idempotency/idempotency.ts'
import { onceInline } from '@app/shared/idempotency/once-inline.ts'
import type { App } from '../app.ts'
import type { UpstreamTemplate } from '../upstream/templates.ts'
import { goneWords, vanished } from './statuses.ts'
import { storeTemplates } from './store-templates.ts'
import { deadlineOf, openAccount, type TemplateAccount } from './templates.ts'

/**
 * Reads all of the platform's templates before anything is written, so that none vanishes after half a reading. One organization's
 * syncs are stored one after the other: else they could wait for each other's rows with all connections, and other organizations'
 * messages would wait for one.
 */
export const syncTemplates: Handler<App, typeof contract> = async (app, { params }, caller) => {
  const stored = await storedAnswer(app.sql, app.sealKeys, caller)
  if (stored) return stored
  const { organizationId } = caller
  const account = await openAccount(app, { organizationId, phoneNumberId: params.phone_number_id })
  const store = (found: readonly UpstreamTemplate[], hasCaller: boolean) =>
    app.syncInTurn({ organizationId, deadline: hasCaller ? caller.deadline : Infinity }, () =>
      storeAll(app.sql, account, found),
    )
  return onceInline(app, contract, caller, {
    begin: async () => undefined,
    call: () => app.readings.read(app, account, deadlineOf(caller), store),
    finish: async (_tx, _begun, counts) => counts,
  })
}

/** In two transactions, each of which locks templates in their one order. What only the first has written the next sync completes. */
async function storeAll(sql: Sql, account: TemplateAccount, found: readonly UpstreamTemplate[]) {
  const { created, updated } = await sql.begin((tx) => storeTemplates(tx, account, found))
  const rejected = await sql.begin((tx) => rejectVanished(tx, account, found))
  return { created, updated: updated + rejected, synced: found.length }
}

/** What is not among the found any more is rejected; a creation that was given up, and never came to be, is forgotten. */
async function rejectVanished(
  tx: TransactionSql,
  { organizationId, businessAccountId, askedAt }: TemplateAccount,
  found: readonly UpstreamTemplate[],
) {
  const present = JSON.stringify(found.map(({ name, language }) => ({ name, language })))
  const isAbsent = tx`
    organization_id = ${organizationId} and business_account_id = ${businessAccountId}
    and known_at < ${askedAt}::text::timestamptz and (name, language) not in (
      select name, language from json_to_recordset(${present}::text::json) as u(name text, language text)
    )
  `
  await tx`select from templates where ${isAbsent} order by name collate "C", language collate "C" for update`
  await tx`
    delete from templates
    where ${isAbsent} and provider_template_id is null and held_until <= ${askedAt}::text::timestamptz
  `
  const { count } = await tx`
    update templates set status = 'rejected', upstream_status = ${vanished}, known_at = ${askedAt}::text::timestamptz,
      updated_at = now()
    where ${isAbsent} and provider_template_id is not null and upstream_status <> all(${goneWords as string[]})
  `
  return count
}
