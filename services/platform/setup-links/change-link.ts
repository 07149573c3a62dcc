import type { Caller } from '@app/shared/api/contract.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { notFound, Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { refuseBarred } from '../organizations/bar.ts'
import { linkColumns, type LinkRow } from './setup-links.ts'

/** Changes an active link under its lock; throws `setup_link_inactive` for another one. */
export function changeLink(
  { sql, inTurn }: App,
  { id: customerId, link_id: id }: { id: string; link_id: string },
  caller: Caller,
  change: (tx: TransactionSql, before: LinkRow) => Promise<LinkRow>,
): Promise<LinkRow> {
  const { organizationId } = caller
  const run = async (tx: TransactionSql) => {
    await refuseBarred(tx, organizationId)
    const [link] = await tx<LinkRow[]>`
      select ${linkColumns(tx)} from setup_links l
      where l.organization_id = ${organizationId} and l.customer_id = ${customerId} and l.id = ${id}
      for no key update
    `
    if (!link) throw notFound()
    if (link.status !== 'active') throw new Problem('setup_link_inactive')
    return change(tx, link)
  }
  return inTurn(caller, () => sql.begin(run))
}
