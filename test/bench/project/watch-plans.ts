import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Plan, plansIn } from '../plans.ts'
import type { Project } from './project.ts'

/** Does the works in turn, and answers for each the plans of the statements that services ran meanwhile: the very ones, as they ran. */
export type WatchPlans = (works: Array<() => Promise<void>>) => Promise<Plan[][]>

/** A session reads a changed setting before its next statement. */
const settleMs = 500
/** The server has written its log when a statement is answered, or soon after. */
const writtenMs = 20

/** Loads auto_explain into the sessions of the services, which start anew; undefined when the server has none, or no log here. */
export async function openPlans(project: Project): Promise<WatchPlans | undefined> {
  const log = project.postgresLog
  if (sizeOf(log) === undefined || !(await hasAutoExplain(project))) return undefined
  await change(project, {
    session_preload_libraries: 'auto_explain',
    'auto_explain.log_min_duration': '-1',
    'auto_explain.log_analyze': 'on',
    'auto_explain.log_timing': 'off',
    'auto_explain.log_format': 'json',
  })
  await project.restart()
  return async (works) => {
    await change(project, { 'auto_explain.log_min_duration': '0' })
    const plans: Plan[][] = []
    try {
      for (const work of works) {
        const from = sizeOf(log) ?? 0
        await work()
        await sleep(writtenMs)
        plans.push(plansIn(readFrom(log, from)))
      }
    } finally {
      await change(project, { 'auto_explain.log_min_duration': '-1' })
    }
    return plans
  }
}

async function hasAutoExplain(project: Project) {
  try {
    await project.sql()`load 'auto_explain'`
    return true
  } catch {
    return false
  }
}

async function change(project: Project, settings: Record<string, string>) {
  const session = await project.sql().reserve()
  try {
    // Only a session that has loaded it knows its settings.
    await session`load 'auto_explain'`
    for (const [name, value] of Object.entries(settings)) await session.unsafe(`alter system set ${name} = '${value}'`)
    await session`select pg_reload_conf()`
  } finally {
    session.release()
  }
  await sleep(settleMs)
}

const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size

function readFrom(file: string, position: number) {
  const bytes = Buffer.alloc((sizeOf(file) ?? 0) - position)
  const opened = openSync(file, 'r')
  readSync(opened, bytes, 0, bytes.length, position)
  closeSync(opened)
  return bytes.toString('utf8')
}
