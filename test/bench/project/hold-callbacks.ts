import type { Project } from './project.ts'

/** From now on callbacks are accepted and wait, as those of a number do whose lane somebody holds; answers how they go on. */
export async function holdCallbacks(project: Project): Promise<() => Promise<void>> {
  await project.sql()`
    insert into messaging.callback_lanes (id, grp, held_until)
    select phone_number_id, organization_id, now() + interval '1 hour' from messaging.senders
    on conflict (id) do update set held_until = excluded.held_until
  `
  return async () => {
    await project.sql()`update messaging.callback_lanes set held_until = '-infinity', due_at = now()`
  }
}
