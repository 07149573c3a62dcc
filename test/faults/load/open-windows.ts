import { expect } from 'vitest'
import { clientOf, newPhone, until } from '../../journeys/client.ts'
import type { Stack } from '../../journeys/start-stack.ts'

/** People who have just written to the stack's own number, so that it may answer them. */
export async function openWindows(stack: Stack, count: number) {
  const client = clientOf(stack)
  const phones = Array.from({ length: count }, newPhone)
  await Promise.all(phones.map((phone) => client.inbound(phone, 'hello')))
  await until(async () => {
    const open = new Set<string>()
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: string = cursor && `&cursor=${encodeURIComponent(cursor)}`
      const { body } = await client.api('GET', `/${client.phone}/conversations?limit=100${page}`)
      for (const { contact } of body.data) open.add(contact.phone_number)
      cursor = body.next_cursor
    }
    expect(phones.filter((phone) => !open.has(phone))).toEqual([])
  }, 60_000)
  return { client, phones }
}
