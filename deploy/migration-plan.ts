import type { Migration, SchemaMigrations } from './migration-files.ts'

/** A row of `public.migrations`. */
export interface Applied {
  schema: string
  name: string
  checksum: string
}

export interface Step {
  schema: SchemaMigrations['schema']
  migration: Migration
}

/** What is left to apply. Throws a sentence when the database and the program do not belong together. */
export function planMigrations(all: SchemaMigrations[], applied: Applied[]): Step[] {
  const checksums = new Map(applied.map(({ schema, name, checksum }) => [`${schema} ${name}`, checksum]))
  const known = new Set(all.flatMap(({ schema, migrations }) => migrations.map(({ name }) => `${schema} ${name}`)))
  const unknown = [...checksums.keys()].find((key) => !known.has(key))
  if (unknown !== undefined) {
    throw new Error(
      `The database is newer than this program: the migration "${unknown}" was applied to it, and is unknown here. ` +
        'Run the newer version.',
    )
  }
  return all.flatMap(({ schema, migrations }) => {
    const steps = migrations.filter((migration) => isLeft(migration, checksums.get(`${schema} ${migration.name}`)))
    refuseGaps(schema, migrations, steps)
    return steps.map((migration) => ({ schema, migration }))
  })
}

function isLeft({ name, checksum }: Migration, applied: string | undefined) {
  if (applied !== undefined && applied !== checksum) {
    throw new Error(`The migration ${name} was changed after it was applied. Undo that, and add a new file instead.`)
  }
  return applied === undefined
}

/** A new file comes after those that were applied, or other databases would have had it in another order. */
function refuseGaps(schema: string, migrations: Migration[], left: Migration[]) {
  for (const { name } of left) {
    const [source] = name.split('/')
    const later = migrations.find(
      (other) => other.name.startsWith(`${source}/`) && other.name > name && !left.includes(other),
    )
    if (later) throw new Error(`${schema}: ${name} comes before ${later.name}, which is applied already. Renumber it.`)
  }
}
