import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { App } from '../app.ts'
import { displayPhoneNumber, NumberStatus, type PhoneNumber } from '../numbers/numbers.ts'
import { tellStatus } from '../numbers/tell-status.ts'
import { parseBody } from './parse.ts'

const GraphId = z.string().regex(/^\d{6,20}$/, 'must be 6 to 20 digits')
const Body = z.strictObject({
  phone_number_id: GraphId.optional(),
  business_account_id: GraphId.optional(),
  status: NumberStatus.optional(),
  /** Of this number alone, in place of the setting; null: as the setting says. */
  throughput_per_second: z.int().min(1).nullable().optional(),
  /** Whether the platform tells the change by a callback, where it has one for it. */
  tell: z.boolean().optional(),
})

/** Makes a number known, or changes it; answers once it is on the disk. Lists them all. */
export function controlNumbers(app: App, http: FastifyInstance) {
  const { numbers, dataFile } = app
  http.get('/control/numbers', () => ({ data: numbers.all().map(shown) }))
  http.post('/control/numbers', async (request) => {
    const body = parseBody(Body, request.body)
    const number = numbers.put({
      phoneNumberId: body.phone_number_id,
      businessAccountId: body.business_account_id,
      status: body.status,
      throughputPerSecond: body.throughput_per_second,
    })
    await dataFile.save()
    if (body.tell) tellStatus(app, number)
    return shown(number)
  })
}

const shown = (number: PhoneNumber) => ({
  phone_number_id: number.phoneNumberId,
  business_account_id: number.businessAccountId,
  display_phone_number: displayPhoneNumber(number),
  status: number.status,
  access_token: number.accessToken,
})
