import { openConversation } from '@app/shared/contracts/directory.ts'
import { request } from 'undici'
import type { Project } from './project.ts'

/** How often messaging has asked directory for a conversation. */
export async function askedOf(project: Project): Promise<number> {
  const instances = project.stack().services['messaging'] ?? []
  const pages = await Promise.all(instances.map(async ({ url }) => (await request(`${url}/metrics`)).body.text()))
  const counts = pages.join('\n').split('\n').filter(isCount)
  return counts.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

const isCount = (line: string) =>
  line.startsWith('svc_rpc_asked_seconds_count') && line.includes(`"${openConversation.subject}"`)
