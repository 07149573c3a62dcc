import { setTimeout as sleep } from 'node:timers/promises'
import { isDatabaseAway } from './database.ts'

const againMs = 200

/** Writes what nobody can ask for again, also when the database is away just now; until `deadline`. What it writes may be written twice. */
export async function outlast<T>(deadline: number, write: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await write()
    } catch (err) {
      if (!isDatabaseAway(err) || performance.now() + againMs >= deadline) throw err
      await sleep(againMs)
    }
  }
}
