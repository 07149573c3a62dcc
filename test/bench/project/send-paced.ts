import type { Child } from '../child.ts'
import type { PacedSend, PacedSends } from '../load/paced-sends.ts'
import type { Project } from './project.ts'
import type { Recipient } from './write-in.ts'

interface Sends {
  recipients: Recipient[]
  ratePerSecond: number
  seconds: number
}

/** Has the sender send through the project's API at a fixed rate. */
export function sendPaced(project: Project, sender: Child<PacedSends>, sends: Sends): Promise<PacedSend[]> {
  const { base_url: baseUrl, api_key: key } = project.stack()
  return sender.ask('run', { origin: new URL(baseUrl).origin, key, ...sends })
}
