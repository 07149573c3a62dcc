import type { Sql } from '@app/shared/database/database.ts'

/** Sends that one statement looks at: 30 ms. */
const portion = 10_000

/**
 * Wakes lanes that sleep although they have an open send, or makes them; answers how many. It goes portion by portion and locks no other
 * lane: else whoever adds to a lane would wait until all were looked at, 0.8 s with 200,000 open sends of whatever organizations.
 */
export async function wakeSleepers(sql: Sql, atOnce = portion): Promise<number> {
  let woken = 0
  for (let last: string | null = ''; last !== null;) {
    const some = await wakeSome(sql, last, atOnce)
    woken += some.woken
    last = some.last
  }
  return woken
}

/** Looks at the sends of the lanes behind `after`; `last` is null when there are none. */
async function wakeSome(sql: Sql, after: string, atOnce: number) {
  const [some] = await sql<[{ woken: number; last: string | null }]>`
    with seen as materialized (
      select lane, phone_number_id from sends where lane > ${after} order by lane, seq limit ${atOnce}
    ), asleep as materialized (
      select lane, min(phone_number_id) as grp from seen
      where (
        select true from send_lanes where id = seen.lane and (due_at is not null or held_until >= now())
      ) is null
      group by 1
    ), woken as (
      insert into send_lanes as l (id, grp, due_at) select lane, grp, now() from asleep order by lane
      on conflict (id) do update set due_at = now() where l.due_at is null and l.held_until < now()
      returning id
    )
    select (select count(*)::int from woken) as woken, (select max(lane) from seen) as last
  `
  return some
}
