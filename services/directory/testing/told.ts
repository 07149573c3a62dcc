import type { App } from '../app.ts'
import { newNumber } from './app.ts'
import { telling } from './changes.ts'
import { managing } from './managing.ts'

/** A number with people of whom messaging tells, and whom its organization manages. */
export async function newToldNumber(app: App, changes: Parameters<typeof newNumber>[1] = {}) {
  const number = await newNumber(app, changes)
  return { ...number, ...managing(app, { ...number, teamId: number.state.team_id }), ...telling(app, number) }
}
