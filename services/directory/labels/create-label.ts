import type { Handler } from '@app/shared/api/contract.ts'
import { createLabel as contract } from '@app/shared/contracts/labels.ts'
import { once, storedAnswer } from '@app/shared/idempotency/idempotency.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import type { App } from '../app.ts'
import { chooseTeam } from '../teams/choose-team.ts'
import { labelColumns, labelExists, type LabelRow, toLabel } from './labels.ts'

export const createLabel: Handler<App, typeof contract> = async (app, { body }, caller) => {
  // A repeated request is answered as before, whatever teams there are by now.
  const stored = await storedAnswer(app.sql, app.sealKeys, caller)
  if (stored) return stored
  const teamId = await chooseTeam(app, body.team_id, caller)
  return once(app, contract, caller, async (tx) => {
    const id = newId('lbl')
    const [row] = await tx<LabelRow[]>`
      insert into labels (organization_id, id, team_id, name, color, created_at, updated_at)
      values (${caller.organizationId}, ${id}, ${teamId}, ${body.name}, ${body.color}, ${timeOf(id)}, ${timeOf(id)})
      on conflict do nothing
      returning ${labelColumns(app.sql)}
    `
    if (!row) throw labelExists()
    return toLabel(row)
  })
}
