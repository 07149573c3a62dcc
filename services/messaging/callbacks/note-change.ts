import type { Core } from '../app.ts'
import type { Change } from './changes.ts'

/** The account fields are rare, and what an operator looks for when a number stops working. */
export function logChange({ log }: Pick<Core, 'log'>, change: Change): void {
  const { organizationId, businessAccountId, phoneNumberId, field, value } = change
  log.info(
    { organization: organizationId, businessAccountId, number: phoneNumberId, field, event: value['event'] },
    'platform change',
  )
}

/** A change that is for people to know: it is logged and counted, and nothing is made of it. */
export async function noteChange(core: Pick<Core, 'sql' | 'log'>, change: Change): Promise<boolean> {
  logChange(core, change)
  await core.sql`
    insert into unhandled_changes as u (field, reason, count) values (${change.field}, 'informational', 1)
    on conflict (day, field, reason) do update set count = u.count + 1
  `
  return true
}
