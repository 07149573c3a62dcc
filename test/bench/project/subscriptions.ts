import { z } from 'zod'
import type { Project } from './project.ts'

export interface NewSubscription {
  url: string
  events: string[]
  phone_number_ids?: string[]
}

export interface Subscription {
  id: string
  /** Keeps what comes, and delivers nothing. */
  pause: () => Promise<void>
  resume: () => Promise<void>
  delete: () => Promise<void>
}

const created = z.object({ data: z.object({ id: z.string() }) })

/** Subscribes through the public API. */
export async function subscribe(project: Project, body: NewSubscription): Promise<Subscription> {
  const { base_url: baseUrl, api_key: key } = project.stack()
  const ask = async (method: string, path: string, asked?: object) => {
    const headers = { authorization: `Bearer ${key}`, ...(asked && { 'content-type': 'application/json' }) }
    const init = { method, headers, ...(asked && { body: JSON.stringify(asked) }) }
    const answer = await fetch(`${baseUrl}/webhook_subscriptions${path}`, init)
    if (!answer.ok) throw new Error(`A subscription is answered ${answer.status} ${await answer.text()}`)
    return answer.json()
  }
  const { id } = created.parse(await ask('POST', '', body)).data
  return {
    id,
    async pause() {
      await ask('PATCH', `/${id}`, { status: 'paused' })
    },
    async resume() {
      await ask('PATCH', `/${id}`, { status: 'active' })
    },
    async delete() {
      await ask('DELETE', `/${id}`)
    },
  }
}
