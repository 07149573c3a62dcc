import { z } from 'zod'
import { control } from './control.ts'
import type { Project } from './project.ts'

const sent = z.object({
  data: z.array(z.object({ at: z.iso.datetime(), body: z.object({ biz_opaque_callback_data: z.string() }) })),
})

/** When the platform took a message of these numbers, in epoch milliseconds; it knows it by our id. */
export async function takenByUpstream(project: Project, phoneNumberIds: Iterable<string>) {
  const { simulator_url: simulatorUrl } = project.stack()
  const at = new Map<string, number>()
  for (const number of new Set(phoneNumberIds)) {
    const { data } = sent.parse(await control(simulatorUrl, 'GET', `sent?phone_number_id=${number}`))
    for (const { at: time, body } of data) at.set(body.biz_opaque_callback_data, Date.parse(time))
  }
  return ({ id }: { id: string }): number => {
    const time = at.get(id)
    if (time === undefined) throw new Error(`${id} never came to the platform`)
    return time
  }
}
