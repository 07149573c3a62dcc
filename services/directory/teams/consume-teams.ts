import { consume, type Consuming } from '@app/shared/events/consume.ts'
import { memberChanged, teamChanged } from '@app/shared/contracts/platform.ts'
import { consumers } from '@app/shared/events/provision.ts'
import type { DataService } from '@app/shared/service/service.ts'

/** Events may come in another order than they were told in; the later one holds. */
export const consumeTeams = (app: DataService): Consuming =>
  consume(app, consumers.directoryTeams.name, teamChanged, async (tx, { team }, { organization, at }) => {
    await tx`
      insert into teams as t (organization_id, id, name, told_at) values (${organization}, ${team.id}, ${team.name}, ${at})
      on conflict (organization_id, id) do update set name = excluded.name, told_at = excluded.told_at
      where t.told_at <= excluded.told_at
    `
  })

export const consumeMembers = (app: DataService): Consuming =>
  consume(app, consumers.directoryMembers.name, memberChanged, async (tx, { member }, { organization, at }) => {
    await tx`
      insert into members as m (organization_id, id, team_id, name, email, told_at)
      values (${organization}, ${member.id}, ${member.team_id}, ${member.name}, ${member.email}, ${at})
      on conflict (organization_id, id) do update set
        team_id = excluded.team_id, name = excluded.name, email = excluded.email, told_at = excluded.told_at
      where m.told_at <= excluded.told_at
    `
  })
