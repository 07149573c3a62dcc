import { randomInt } from 'node:crypto'
import { createInTurn } from '@app/shared/bus/in-turn.ts'
import type { App } from '../app.ts'
import { knowNumber, newCustomer, newOrganization, newPhoneNumberId, type TestApp } from './app.ts'
import { showNumbers } from './onboarding.ts'

interface Customer {
  organizationId: string
  id: string
}

interface RivalNumber {
  id: string
  businessAccountId: string
  /** How the platform shows it. */
  shown: { status: string; is_on_biz_app: boolean }
}

interface Link {
  organizationId: string
  customerId: string
  id: string
  token: string
}

/** Two organizations, their customers, and the numbers that all of them may have. */
export interface Rivals {
  /** Of the service, on one database: each has turns of its own, so that only the database keeps them apart. */
  instances: App[]
  organizationIds: string[]
  customers: Customer[]
  numbers: RivalNumber[]
  /** Those made so far. */
  links: Link[]
  /** Has the platform answer of all numbers as they are to be shown now. */
  show: () => void
  wakePolling: () => void
}

const customersOfEach = 3

export async function gatherRivals({ app, upstream }: TestApp): Promise<Omit<Rivals, 'wakePolling'>> {
  const organizationIds = [await newOrganization(app), await newOrganization(app)]
  const customers: Customer[] = []
  for (const organizationId of organizationIds) {
    for (let n = 0; n < customersOfEach; n++) {
      customers.push({ organizationId, id: await newCustomer(app, organizationId) })
    }
  }
  const numbers = [...newNumbers(3), ...newNumbers(2)]
  const show = () => showAll(upstream, numbers)
  show()
  const instances = [app, { ...app, inTurn: createInTurn() }]
  return { instances, organizationIds, customers, numbers, links: [], show }
}

/** Of one new business account. */
function newNumbers(count: number): RivalNumber[] {
  const businessAccountId = `9${randomInt(1e9).toString().padStart(9, '0')}`
  const shown = { status: 'PENDING', is_on_biz_app: false }
  return Array.from({ length: count }, () => ({ id: newPhoneNumberId(), businessAccountId, shown }))
}

const done = { body: { success: true } }

function showAll(upstream: TestApp['upstream'], numbers: RivalNumber[]) {
  const { answers } = upstream
  answers.set('/oauth/access_token', { body: { access_token: 'EAAbought', token_type: 'bearer' } })
  for (const { id, shown } of numbers) {
    knowNumber({ upstream }, id, shown)
    answers.set(`/${id}/register`, done)
    answers.set(`/${id}/smb_app_data`, done)
  }
  for (const [businessAccountId, some] of Map.groupBy(numbers, (number) => number.businessAccountId)) {
    const listed = some.map(({ id, shown }) => ({ phoneNumberId: id, ...shown }))
    showNumbers(upstream, businessAccountId, listed)
    answers.set(`/${businessAccountId}/subscribed_apps`, done)
  }
}
