import { load, type RequestToSend, writeRequests } from '../load/wrk.ts'
import type { ConnectedNumber } from '../project/connect-numbers.ts'
import { fillMessages } from '../project/fill-messages.ts'
import { untilIdle } from '../project/idle.ts'
import type { Project } from '../project/project.ts'
import { dayMs } from '../project/ulid-sql.ts'
import { alternate, compare, msText } from '../rounds.ts'
import { sizesOf } from '../sizes.ts'
import type { Goal } from './goal.ts'

const connections = 16
const days = 30

/** Pages of a number with many messages against those of one with few: the newest, pages far down, and filtered ones. */
export const measureListDepth: Goal = async (bench) => {
  const { options, folder, say } = bench
  const project = await bench.project()
  const [shallow, deep] = (await bench.fixture()).numbers
  if (!shallow || !deep) throw new Error('this needs two numbers')
  const { few, many } = sizesOf(options)
  say(`list-depth: writing ${few + many} messages …`)
  await fillMessages(project, shallow, { count: few, days })
  await fillMessages(project, deep, { count: many, days })
  const side = (name: string, number: ConnectedNumber) => {
    const requests = writeRequests(
      folder,
      `list-${name}`,
      new URL(project.stack().base_url).origin,
      pagesOf(project, number),
    )
    return async (seconds: number) => {
      const result = await load(requests, connections, seconds)
      await untilIdle(project)
      return result
    }
  }
  const loads = await alternate(options, { few: side('few', shallow), many: side('many', deep) })
  const p95s = (name: 'few' | 'many') => loads[name].map(({ p95Ms }) => p95Ms)
  return { figures: [compare('listDepth', p95s('many'), p95s('few'), msText)], details: loads }
}

function pagesOf(project: Project, { phoneNumberId }: ConnectedNumber): RequestToSend[] {
  const { api_key: key } = project.stack()
  const now = Date.now()
  const farDown = Array.from({ length: 12 }, (_, n) => {
    const before = new Date(now - ((n + 1) / 13) * days * dayMs)
    return `created_before=${before.toISOString()}`
  })
  const queries = ['', ...farDown, 'direction=outbound', 'status=delivered', 'status=failed', 'status=pending']
  return queries.map((query) => ({
    method: 'GET',
    path: `/v1/${phoneNumberId}/messages?limit=25&${query}`,
    headers: { authorization: `Bearer ${key}` },
  }))
}
