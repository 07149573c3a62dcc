import { request } from 'undici'
import { inject } from 'vitest'
import { admin } from './admin.ts'
import { client, type Json } from './client.ts'
import { checkAnswer } from './openapi-check.ts'

/** Another organization with a key and a number of its own, and the API as it sees it. */
export async function newOrganization() {
  const { id } = await admin('organization', 'create', '--name', 'Another', '--tier', 'unlimited')
  const { key } = await admin('key', 'create', '--organization', id, '--label', 'journey')
  return { id: id as string, key: key as string, phone: await connectNumber(id) }
}

/** A number of the simulator, connected; answers its id. */
export async function connectNumber(organizationId: string, ...options: string[]): Promise<string> {
  const number = await client().control('/control/numbers', {})
  await admin(
    'account', 'connect', '--organization', organizationId, '--phone-number-id', number.phone_number_id,
    '--access-token', number.access_token, '--business-account-id', number.business_account_id, ...options,
  ) // prettier-ignore
  return number.phone_number_id as string
}

/** All items of a list, page by page. */
export async function everyPage(path: string, limit: number, key?: string): Promise<Json[]> {
  const { api } = client()
  const items: Json[] = []
  let cursor: string | null = null
  do {
    const next: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const answer = await api('GET', `${path}${path.includes('?') ? '&' : '?'}limit=${limit}${next}`, key ? { key } : {})
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
    items.push(...answer.body.data)
    cursor = answer.body.next_cursor
  } while (cursor !== null)
  return items
}

/** A GET as it comes, with or without a body. */
export async function getRaw(path: string, headers: Record<string, string> = {}) {
  const stack = inject('stack')
  const answer = await request(`${stack.base_url}${path}`, {
    headers: { authorization: `Bearer ${stack.api_key}`, ...headers },
  })
  const text = await answer.body.text()
  const [bare = ''] = path.split('?')
  if (answer.statusCode !== 304) checkAnswer('GET', bare, answer.statusCode, JSON.parse(text))
  return { status: answer.statusCode, headers: answer.headers, text }
}
