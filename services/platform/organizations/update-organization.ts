import type { Handler, Input } from '@app/shared/api/contract.ts'
import type { updateOrganization as contract } from '@app/shared/contracts/platform.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { recordChanges, statesOfOrganization } from '../accounts/account-states.ts'
import { tellStates } from '../accounts/tell-states.ts'
import type { App } from '../app.ts'
import { untilForgotten } from '../keys/until-forgotten.ts'
import { lockOrganization } from './lock-organization.ts'
import { organizationColumns, type OrganizationRow, toOrganization } from './organizations.ts'

type Changes = Input<typeof contract>['body']

export const updateOrganization: Handler<App, typeof contract> = async (app, { body }, caller) => {
  const { organization_id: id } = body
  const { row, states } = await app.sql.begin(async (tx) => {
    const before = await lockOrganization(tx, id)
    const statesBefore = await statesOfOrganization(tx, id)
    const after = await write(tx, before, body)
    return { row: after, states: await recordChanges(tx, statesBefore, await statesOfOrganization(tx, id), caller) }
  })
  app.relay.wake()
  // All that are attached, changed or not: the same call before this one may have been cut off here. Nothing is sent from others.
  const attached = states.filter((state) => state.attached)
  await Promise.all([
    (body.features || body.subscription || body.settings) && tellStates(app, attached, caller),
    (body.features || body.tier) && untilForgotten(),
  ])
  return toOrganization(row)
}

async function write(tx: TransactionSql, before: OrganizationRow, changes: Changes) {
  const { name, tier, features, subscription, retention_days: retentionDays, settings } = changes
  const [row] = await tx<[OrganizationRow]>`
    update organizations set
      name = ${name ?? before.name},
      tier = ${tier ?? before.tier},
      features = ${[...new Set(features ?? before.features)]}::text[],
      subscription = ${subscription ?? before.subscription},
      retention_days = ${retentionDays === undefined ? before.retentionDays : retentionDays},
      settings = ${JSON.stringify({ ...before.settings, ...settings })}::text::jsonb
    where id = ${before.id}
    returning ${tx(organizationColumns)}
  `
  return row
}
