import type { Sql } from '@app/shared/database/database.ts'

/** Does the work while no statement may insert into or update more than a thousand rows of these tables. */
export async function refusingManyRows(sql: Sql, tables: string[], work: () => Promise<unknown>): Promise<void> {
  const triggers = tables.flatMap((table) =>
    ['insert', 'update'].map(
      (change) => `
        create trigger refuse_many_rows_${change} after ${change} on ${table} referencing new table as written
          for each statement execute function refuse_many_rows();
      `,
    ),
  )
  await sql.unsafe(`
    create function refuse_many_rows() returns trigger language plpgsql as $$
    begin
      if (select count(*) from written) > 1000 then raise 'too many rows of % in one statement', tg_table_name; end if;
      return null;
    end
    $$;
    ${triggers.join('')}
  `)
  try {
    await work()
  } finally {
    await sql`drop function refuse_many_rows cascade`
  }
}
