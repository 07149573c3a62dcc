import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { connectAccount } from '@app/shared/contracts/platform.ts'
import { withBus } from '@app/deploy/stack/bus.ts'
import { busPlaceOf } from '@app/deploy/stack/stack-file.ts'
import { z } from 'zod'
import { control } from './control.ts'
import type { Project } from './project.ts'

export interface ConnectedNumber {
  phoneNumberId: string
  businessAccountId: string
  displayPhoneNumber: string
  /** What the platform asks who sends from it. */
  accessToken: string
}

const connected = z.object({
  phone_number_id: z.string(),
  business_account_id: z.string(),
  display_phone_number: z.string(),
  access_token: z.string(),
})

/** Makes so many numbers at the platform, and connects them to the demo organization. */
export async function connectNumbers(project: Project, count: number): Promise<ConnectedNumber[]> {
  const { organization_id, simulator_url: simulatorUrl, ...stack } = project.stack()
  return withBus(busPlaceOf(stack), async (bus) => {
    const numbers: ConnectedNumber[] = []
    for (let n = 0; n < count; n++) {
      const number = connected.parse(await control(simulatorUrl, 'POST', 'numbers', {}))
      const { phone_number_id, business_account_id, display_phone_number, access_token } = number
      const body = { organization_id, phone_number_id, business_account_id, access_token }
      await call(bus, connectAccount, { body }, systemCaller(), { timeoutMs: 20_000 })
      numbers.push({
        phoneNumberId: phone_number_id,
        businessAccountId: business_account_id,
        displayPhoneNumber: display_phone_number,
        accessToken: access_token,
      })
    }
    return numbers
  })
}
