import { z } from 'zod'
import { load, writeRequests } from '../load/wrk.ts'
import { drain } from './backlog.ts'
import { control } from './control.ts'
import type { ConnectedNumber } from './connect-numbers.ts'
import type { Fixture } from './fixture.ts'
import type { Project } from './project.ts'
import { sendRequests } from './send-requests.ts'

const sends = z.object({ data: z.array(z.object({ id: z.string(), body: z.object({ to: z.string() }) })) })

/**
 * The bodies of callbacks that tell of messages which the platform has taken from us: `delivered` of each, then `read` of
 * each. Messages are sent first when there are too few.
 */
export async function statusBodies(
  project: Project,
  { numbers, recipients }: Fixture,
  folder: string,
  atLeast: number,
) {
  let bodies = await bodiesOf(project, numbers)
  for (let attempt = 0; bodies.length < atLeast && attempt < 5; attempt++) {
    const { base_url: baseUrl, api_key: key } = project.stack()
    await load(writeRequests(folder, 'statuses', new URL(baseUrl).origin, sendRequests(recipients, key, false)), 64, 2)
    await drain(project)
    bodies = await bodiesOf(project, numbers)
  }
  return bodies
}

async function bodiesOf(project: Project, numbers: ConnectedNumber[]) {
  const { simulator_url: simulatorUrl } = project.stack()
  const messages: Array<{ number: ConnectedNumber; id: string; to: string }> = []
  for (const number of numbers) {
    const { data } = sends.parse(await control(simulatorUrl, 'GET', `sent?phone_number_id=${number.phoneNumberId}`))
    messages.push(...data.map(({ id, body }) => ({ number, id, to: body.to })))
  }
  return ['delivered', 'read'].flatMap((status) =>
    messages.map(({ number, id, to }) => {
      const timestamp = String(Math.floor(Date.now() / 1000))
      return bodyOf(number, { id, status, timestamp, recipient_id: to.slice(1) })
    }),
  )
}

const bodyOf = (number: ConnectedNumber, status: object) =>
  JSON.stringify({
    object: 'whatsapp_business_account',
    entry: [
      {
        id: number.businessAccountId,
        changes: [
          {
            value: {
              messaging_product: 'whatsapp',
              metadata: {
                display_phone_number: number.displayPhoneNumber,
                phone_number_id: number.phoneNumberId,
              },
              statuses: [status],
            },
            field: 'messages',
          },
        ],
      },
    ],
  })
