import { z } from 'zod'
import type { Project } from './project.ts'

export interface NewSubscription {
  url: string
  events: string[]
  phone_number_ids?: string[]
}

export interface Subscription {
  id: string
  delete: () => Promise<void>
}

const created = z.object({ data: z.object({ id: z.string() }) })

/** Subscribes through the public API. */
export async function subscribe(project: Project, body: NewSubscription): Promise<Subscription> {
  const { base_url: baseUrl, api_key: key } = project.stack()
  const authorization = `Bearer ${key}`
  const answer = await fetch(`${baseUrl}/webhook_subscriptions`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (answer.status !== 201) throw new Error(`A subscription is answered ${answer.status} ${await answer.text()}`)
  const { id } = created.parse(await answer.json()).data
  return {
    id,
    async delete() {
      await fetch(`${baseUrl}/webhook_subscriptions/${id}`, { method: 'DELETE', headers: { authorization } })
    },
  }
}
