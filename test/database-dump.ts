import postgres from 'postgres'

export interface DumpedRow {
  /** Schema and table. */
  table: string
  /** The row as JSON, and behind it what it holds as bytes, as text. */
  text: string
}

/** Every row of every table of a database, as a superuser reads them. */
export async function dumpDatabase(url: string): Promise<DumpedRow[]> {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  try {
    const tables = await sql<{ schema: string; name: string }[]>`
      select n.nspname as schema, c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema') order by 1, 2
    `
    const rows: DumpedRow[] = []
    for (const { schema, name } of tables) {
      const found = await sql<{ text: string }[]>`
        select row_to_json(t)::text as text from ${sql(schema)}.${sql(name)} t
      `
      for (const { text } of found) rows.push({ table: `${schema}.${name}`, text: withBytes(text) })
    }
    return rows
  } finally {
    await sql.end()
  }
}

/** In JSON the backslash of `\x…` stands twice. */
const withBytes = (json: string) =>
  [json, ...[...json.matchAll(/\\\\x([0-9a-f]+)/g)].map(([, hex = '']) => Buffer.from(hex, 'hex').toString())].join(
    '\n',
  )
