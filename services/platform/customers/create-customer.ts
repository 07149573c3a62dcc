import type { Handler } from '@app/shared/api/contract.ts'
import { createCustomer as contract, customerCreated } from '@app/shared/contracts/customers.ts'
import { once } from '@app/shared/idempotency/idempotency.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import type { App } from '../app.ts'
import { refuseBarred } from '../organizations/bar.ts'
import { chooseTeam } from '../teams/choose-team.ts'
import { customerColumns, type CustomerRow, emitCustomer, toCustomer } from './customers.ts'

export const createCustomer: Handler<App, typeof contract> = (app, { body }, caller) =>
  app.inTurn(caller, () =>
    once(app, contract, caller, async (tx) => {
      const { organizationId } = caller
      await refuseBarred(tx, organizationId)
      const teamId = await chooseTeam(tx, organizationId, body.team_id)
      const id = newId('cus')
      const createdAt = timeOf(id)
      const [row] = await tx<[CustomerRow]>`
      insert into customers (organization_id, id, team_id, name, email, metadata, status, created_at, updated_at)
      values (${organizationId}, ${id}, ${teamId}, ${body.name}, ${body.email ?? null},
        ${JSON.stringify(body.metadata ?? {})}::text::jsonb, 'pending', ${createdAt}, ${createdAt})
      returning ${tx(customerColumns)}
    `
      await emitCustomer(tx, customerCreated, row, caller)
      return toCustomer(row)
    }),
  )
