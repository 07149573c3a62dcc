import type { Handler } from '@app/shared/api/contract.ts'
import type { putAccount as contract } from '@app/shared/contracts/directory.ts'
import type { AccountState } from '@app/shared/contracts/platform.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { z } from 'zod'
import type { App } from '../app.ts'

export const putAccount: Handler<App, typeof contract> = async ({ sql }, { body }) => ({
  version: await storeAccount(sql, body),
})

/** Takes over an account's state unless a newer one is here; answers the version that is here now. */
export async function storeAccount(sql: Sql | TransactionSql, state: z.output<typeof AccountState>): Promise<number> {
  const { organization_id: organizationId, phone_number_id: phoneNumberId, customer, settings } = state
  // Should the number have come back as another account, the later minted one counts.
  const stored = await sql`
    insert into accounts as a (organization_id, phone_number_id, account_id, version, phone_number, customer_id,
      customer_name, team_id, attached, window_check, require_marketing_consent)
    values (${organizationId}, ${phoneNumberId}, ${state.account_id}, ${state.version}, ${state.phone_number},
      ${customer?.id ?? null}, ${customer?.name ?? null}, ${state.team_id}, ${state.attached},
      ${settings.window_check}, ${settings.require_marketing_consent})
    on conflict (organization_id, phone_number_id) do update set
      account_id = excluded.account_id, version = excluded.version, phone_number = excluded.phone_number,
      customer_id = excluded.customer_id, customer_name = excluded.customer_name, team_id = excluded.team_id,
      attached = excluded.attached, window_check = excluded.window_check,
      require_marketing_consent = excluded.require_marketing_consent
    where (a.account_id, a.version) < (excluded.account_id, excluded.version)
    returning version
  `
  if (stored.length === 1) return state.version
  const [row] = await sql<{ version: string }[]>`
    select version from accounts where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId}
  `
  return Number(row?.version ?? state.version)
}
