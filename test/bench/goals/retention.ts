import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { updateOrganization } from '@app/shared/contracts/platform.ts'
import { withBus } from '@app/deploy/stack/bus.ts'
import { busPlaceOf } from '@app/deploy/stack/stack-file.ts'
import type { Bench } from '../bench.ts'
import { type Child, startChild } from '../child.ts'
import type { PacedSends } from '../load/paced-sends.ts'
import { quantile } from '../median.ts'
import { drain } from '../project/backlog.ts'
import type { ConnectedNumber } from '../project/connect-numbers.ts'
import { fillAttempts, fillMessages } from '../project/fill-messages.ts'
import type { Project } from '../project/project.ts'
import { sendPaced } from '../project/send-paced.ts'
import { until } from '../project/until.ts'
import { alternate, compare, msText } from '../rounds.ts'
import type { Goal } from './goal.ts'

const ratePerSecond = 200
const keptDays = 60
/** The job deletes some thousand a second at most: so many are not gone before a measurement is over. */
const oldASecond = 5_000
/** From the service's start, when the job begins, to the measurement. */
const beforeSeconds = 10
const warmUpSeconds = 2
const beginTimeoutMs = 60_000

/** What sends notice of the job that deletes old messages: the p95 of their answers, at 200 a second. */
export const measureRetention: Goal = async (bench) => {
  const { options } = bench
  const project = await bench.project()
  const [number] = (await bench.fixture()).numbers
  if (!number) throw new Error('this needs a number')
  const sender = startChild<PacedSends>('load/paced-sends.ts')
  let deleted = 0
  try {
    const p95s = await alternate(options, {
      none: (seconds) => afresh(bench, sender, null, () => answerP95(bench, sender, seconds)),
      deleting: async (seconds) => {
        const filled = (seconds + beforeSeconds) * oldASecond
        await fillOld(project, number, filled)
        return afresh(bench, sender, keptDays, async () => {
          const hasBegun = async () => (await oldMessages(project, number)) < filled
          await until('the job deletes', hasBegun, beginTimeoutMs)
          const before = await oldMessages(project, number)
          const p95 = await answerP95(bench, sender, seconds)
          const after = await oldMessages(project, number)
          if (after === 0) throw new Error(`the ${before} old messages were gone before the measurement was over`)
          deleted += (before - after) / seconds / options.rounds
          return p95
        })
      },
    })
    return {
      figures: [compare('retention', p95s.deleting, p95s.none, msText)],
      notes: [`old messages that were deleted beside the sends: ${deleted.toFixed(0)} a second`],
      details: p95s,
    }
  } finally {
    await keepFor(project, null)
    await deleteOld(project, number)
    await sender.stop()
  }
}

/**
 * Measures a stack that was just started: then the job begins, which looks once an hour. Both sides are, so that both are
 * equally warm.
 */
async function afresh<T>(bench: Bench, sender: Child<PacedSends>, days: number | null, measure: () => Promise<T>) {
  const project = await bench.project()
  await keepFor(project, days)
  await project.restart()
  if (!bench.options.quick) await answerP95(bench, sender, warmUpSeconds)
  const result = await measure()
  await drain(project)
  return result
}

async function keepFor(project: Project, days: number | null) {
  const { organization_id, ...stack } = project.stack()
  const body = { organization_id, retention_days: days }
  await withBus(busPlaceOf(stack), (bus) =>
    call(bus, updateOrganization, { body }, systemCaller(), { timeoutMs: 20_000 }),
  )
}

async function answerP95(bench: Bench, sender: Child<PacedSends>, seconds: number) {
  const { recipients } = await bench.fixture()
  const sends = await sendPaced(await bench.project(), sender, { recipients, ratePerSecond, seconds })
  const answerMs = sends.map(({ askedAt, answeredAt }) => answeredAt - askedAt)
  return quantile(answerMs, 0.95)
}

/** With what goes with them. What an earlier round has left is taken away first: its ids would come again. */
async function fillOld(project: Project, number: ConnectedNumber, count: number) {
  await deleteOld(project, number)
  await fillMessages(project, number, { count, days: keptDays, endedDaysAgo: keptDays + 1 })
  await fillAttempts(project, number)
}

const deleteOld = (project: Project, number: ConnectedNumber) =>
  project.sql()`delete from messaging.messages where ${isOld(project, number)}`

async function oldMessages(project: Project, number: ConnectedNumber) {
  const [row] = await project.sql()<{ count: number }[]>`
    select count(*)::int as count from messaging.messages where ${isOld(project, number)}
  `
  return row?.count ?? 0
}

const isOld = (project: Project, { phoneNumberId }: ConnectedNumber) => project.sql()`
  organization_id = ${project.stack().organization_id} and phone_number_id = ${phoneNumberId}
    and created_at < now() - ${keptDays} * interval '1 day'
`
