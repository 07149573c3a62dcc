import { expect } from 'vitest'
import { admin } from './admin.ts'
import { type Answer, client, type Json, until } from './client.ts'

type Method = Parameters<ReturnType<typeof client>['api']>[0]

/** An organization of its own, with a key, for tests that change what the others of the run share. */
export async function newTenant(...options: string[]) {
  const { api, control } = client()
  const { id } = await admin('organization', 'create', '--name', 'Tenant', ...options)
  const { key } = await admin('key', 'create', '--organization', id, '--label', 'tests')
  const call = (method: Method, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> =>
    api(method, path, { key, ...(body !== undefined && { body }), ...(headers && { headers }) })
  return {
    id: id as string,
    key: key as string,
    call,
    /** The `data` of an answer that must be a success. */
    async ok(method: Method, path: string, body?: unknown): Promise<Json> {
      const answer = await call(method, path, body)
      expect(answer, `${method} ${path}: ${JSON.stringify(answer.body)}`).toMatchObject({
        status: expect.toSatisfy((status: number) => status < 300),
      })
      return answer.body.data
    },
    /** Another number of the platform, connected; answers its id. */
    async connect(...more: string[]): Promise<string> {
      const number = await control('/control/numbers', {})
      const given = {
        organization: id,
        'phone-number-id': number.phone_number_id,
        'access-token': number.access_token,
        'business-account-id': number.business_account_id,
      }
      const words = Object.entries(given).flatMap(([name, value]) => [`--${name}`, String(value)])
      await admin('account', 'connect', ...words, ...more)
      return number.phone_number_id as string
    },
    /** Somebody writes to the number, so that it may answer. */
    async openWindow(phone: string, from: string) {
      const message = { from: from.replace('+', ''), type: 'text', text: { body: 'hi' } }
      await control('/control/inbound', { phone_number_id: phone, message })
      await until(async () => {
        const { body } = await call('GET', `/${phone}/contacts?phone_number=${encodeURIComponent(from)}`)
        expect(body.data).toHaveLength(1)
      })
    },
  }
}

export type Tenant = Awaited<ReturnType<typeof newTenant>>
