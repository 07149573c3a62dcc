import { startGauges } from '@app/test/gauges.ts'
import { expect, test } from 'vitest'
import { readStanding } from './metrics.ts'

test('what stands in the tables is told: open sends and the parked ones of them, what waits, and what of today was not handled', async () => {
  const { sql, probes, told } = await startGauges('messaging')
  await sql`
    insert into sends (organization_id, phone_number_id, message_id, lane, parked_until, expires_at)
    select 'org_1', '1', 'msg_' || n, 'lane', case when n > 3 then now() + interval '1 minute' end, now() + interval '1 day'
    from generate_series(1, 5) n
  `
  await sql`
    insert into callback_items (callback_id, lane, kind, item) select n, 'lane', 'message', '{}' from generate_series(1, 4) n
  `
  await sql`
    insert into media_copies (organization_id, phone_number_id, media_id, lane, upstream_media_id, event_due_at)
    select 'org_1', '1', 'med_' || n, 'org_1', n, now() from generate_series(1, 3) n
  `
  await sql`
    insert into unhandled_changes (field, reason, day, count)
    values ('flows', 'unknown_field', current_date, 2), ('calls', 'unknown_field', current_date, 4),
      ('flows', 'unfit', current_date, 1), ('flows', 'unknown_field', current_date - 1, 100)
  `
  readStanding({ sql, probes })
  expect(await told(/^svc_(?!ready|readings)(\S+) (\S+)$/gm)).toEqual({
    sends_open: 5,
    sends_parked: 2,
    callback_items_waiting: 4,
    media_copies_waiting: 3,
    'callbacks_unhandled{reason="unknown_field"}': 6,
    'callbacks_unhandled{reason="unfit"}': 1,
  })
})
