import { type Child, startChild } from '../child.ts'
import type { PacedSends } from '../load/paced-sends.ts'
import { quantile } from '../median.ts'
import { drain } from '../project/backlog.ts'
import { connectNumbers } from '../project/connect-numbers.ts'
import { control } from '../project/control.ts'
import { type Fixture, phoneOf } from '../project/fixture.ts'
import type { Project } from '../project/project.ts'
import { sendPaced } from '../project/send-paced.ts'
import { takenByUpstream } from '../project/taken-by-upstream.ts'
import { until } from '../project/until.ts'
import { type Recipient, writeIn } from '../project/write-in.ts'
import { alternate, compare, msText } from '../rounds.ts'
import type { Goal } from './goal.ts'

const healthyRate = 200
/** What the platform takes from the throttled number in a second, and what it is asked to. */
const takenPerSecond = 1
const askedPerSecond = 20
const throttledContacts = 30
const timeoutMs = 60_000

/** What healthy numbers notice of one whose sends the platform refuses but one a second: their p95 from send to platform. */
export const measureThrottled: Goal = async (bench) => {
  const { options } = bench
  const [project, fixture] = [await bench.project(), await bench.fixture()]
  const throttled = await throttledNumber(project, fixture)
  const healthy = startChild<PacedSends>('load/paced-sends.ts')
  const beside = startChild<PacedSends>('load/paced-sends.ts')
  const cast = { project, fixture, throttled, healthy, beside }
  try {
    const p95s = await alternate(options, {
      none: (seconds) => healthyP95(cast, seconds),
      one: (seconds) => besideThrottled(cast, () => healthyP95(cast, seconds), seconds),
    })
    return { figures: [compare('throttled', p95s.one, p95s.none, msText)], details: p95s }
  } finally {
    await setThroughput(project, throttled.phoneNumberId, null)
    await Promise.all([healthy.stop(), beside.stop()])
  }
}

interface Throttled {
  phoneNumberId: string
  recipients: Recipient[]
}

interface Cast {
  project: Project
  fixture: Fixture
  throttled: Throttled
  healthy: Child<PacedSends>
  beside: Child<PacedSends>
}

/** One that is not among the healthy ones. */
async function throttledNumber(project: Project, { numbers }: Fixture): Promise<Throttled> {
  const [number] = await connectNumbers(project, 1)
  if (!number) throw new Error('no number was connected')
  const { phoneNumberId } = number
  const recipients = Array.from({ length: throttledContacts }, (_, contact) => ({
    phoneNumberId,
    to: phoneOf(numbers.length, contact),
  }))
  await writeIn(project, recipients)
  return { phoneNumberId, recipients }
}

const setThroughput = (project: Project, phoneNumberId: string, perSecond: number | null) =>
  control(project.stack().simulator_url, 'POST', 'numbers', {
    phone_number_id: phoneNumberId,
    throughput_per_second: perSecond,
  })

/** From the moment at which a send was asked for to that at which the platform took it. */
async function healthyP95({ project, fixture, healthy }: Cast, seconds: number) {
  const sends = await sendPaced(project, healthy, {
    recipients: fixture.recipients,
    ratePerSecond: healthyRate,
    seconds,
  })
  const ids = fixture.numbers.map(({ phoneNumberId }) => phoneNumberId)
  await until('the healthy numbers have sent theirs', async () => (await waitingSends(project, ids)) === 0, timeoutMs)
  const takenAt = await takenByUpstream(project, ids)
  const delays = sends.map((send) => takenAt(send) - send.askedAt)
  return quantile(delays, 0.95)
}

/** The work, while many more sends are asked of the throttled number than the platform takes. */
async function besideThrottled<T>({ project, throttled, beside }: Cast, work: () => Promise<T>, seconds: number) {
  const { phoneNumberId, recipients } = throttled
  await setThroughput(project, phoneNumberId, takenPerSecond)
  const [result] = await Promise.all([
    work(),
    sendPaced(project, beside, { recipients, ratePerSecond: askedPerSecond, seconds }),
  ])
  if ((await waitingSends(project, [phoneNumberId])) === 0) throw new Error('the throttled number was not held back')
  await setThroughput(project, phoneNumberId, null)
  await hurry(project, phoneNumberId)
  await drain(project)
  return result
}

async function waitingSends(project: Project, phoneNumberIds: string[]) {
  const [row] = await project.sql()<{ count: number }[]>`
    select count(*)::int as count from messaging.sends where phone_number_id = any(${phoneNumberIds})
  `
  return row?.count ?? 0
}

/** What waits because of refusals goes at once, so that the next measurement need not wait for it. */
async function hurry(project: Project, phoneNumberId: string) {
  await project.sql()`update messaging.pace set tat = now() where grp = ${phoneNumberId}`
  await project.sql()`
    update messaging.send_lanes set due_at = now() where grp = ${phoneNumberId} and due_at > now()
  `
}
