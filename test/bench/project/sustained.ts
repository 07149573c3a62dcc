import type { Bench } from '../bench.ts'
import { load, writeRequests } from '../load/wrk.ts'
import { drain } from './backlog.ts'
import type { Project } from './project.ts'
import { sendRequests } from './send-requests.ts'

const connections = 64

/** Sends a second that the machine carries, counted until the last delivery of what was accepted has been made. */
export async function sustained({ options, folder, fixture }: Bench, project: Project): Promise<number> {
  const { base_url: baseUrl, api_key: key } = project.stack()
  const { recipients } = await fixture()
  const requests = writeRequests(folder, 'sustained', new URL(baseUrl).origin, sendRequests(recipients, key, true))
  if (!options.quick) {
    await load(requests, connections, 2)
    await drain(project)
  }
  const startedAt = performance.now()
  const { requests: sent } = await load(requests, connections, options.quick ? 1 : 2 * options.seconds)
  await drain(project)
  return sent / ((performance.now() - startedAt) / 1000)
}
