import { setTimeout as sleep } from 'node:timers/promises'
import { adminOf } from '../../journeys/admin.ts'
import { type Person, write } from './person.ts'

/** How long the last of what was worked through again may take, once what came behind it has arrived. */
const restMs = 2_000

/**
 * Works through all callbacks and all events again, as an operator does who fears that something was lost. Behind each
 * number's callbacks somebody writes: when that is told, so is what was before it.
 */
export async function redriveAll(dataDir: string, since: Date, people: Person[], settled: () => Promise<string[]>) {
  const admin = adminOf(dataDir)
  for (const what of ['callbacks', 'events']) {
    for (let next: string | null = since.toISOString(); next !== null;) {
      const answer = await admin(what, 'redrive', '--since', next)
      next = answer.next_since ?? null
    }
  }
  await Promise.all(people.map(write))
  await settled()
  await sleep(restMs)
  return settled()
}
