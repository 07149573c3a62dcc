import type { App } from '../app.ts'
import { mustOwn } from '../graph/authenticate.ts'
import { badParameter } from '../graph/graph-error.ts'
import type { NodeReader } from '../graph/nodes.ts'
import { displayPhoneNumber, type PhoneNumber } from './numbers.ts'

/** What `GET /{v}/{phone_number_id}` can tell. */
const fields = {
  id: (number) => number.phoneNumberId,
  display_phone_number: displayPhoneNumber,
  verified_name: (number) => number.verifiedName,
  quality_rating: () => 'GREEN',
  code_verification_status: ({ status }) => (status === 'UNVERIFIED' ? 'NOT_VERIFIED' : 'VERIFIED'),
  status: (number) => number.status,
  name_status: () => 'APPROVED',
  platform_type: () => 'CLOUD_API',
  throughput: () => ({ level: 'STANDARD' }),
  is_on_biz_app: (number) => number.isInBusinessApp,
  is_pin_enabled: (number) => number.pin !== null,
  webhook_configuration: (_, callbackUrl) => ({ application: callbackUrl }),
  whatsapp_business_manager_messaging_limit: () => 'TIER_UNLIMITED',
} satisfies Record<string, (number: PhoneNumber, callbackUrl: string) => unknown>

type Field = keyof typeof fields
const shownByDefault = ['verified_name', 'display_phone_number', 'quality_rating', 'id']

const isField = (name: string): name is Field => Object.hasOwn(fields, name)

export const readNumber: NodeReader = (app, id, caller, query) => {
  const number = app.numbers.find(id)
  if (!number || number.status === 'DELETED') return undefined
  mustOwn(caller, number)
  return readFields(app, number, query['fields'])
}

/** What `fields` asks for, or the usual ones. */
export function readFields(app: App, number: PhoneNumber, asked: string | undefined) {
  const wanted = asked ? [...asked.split(','), 'id'] : shownByDefault
  return Object.fromEntries(
    wanted.map((name) => {
      if (!isField(name)) throw badParameter(`Tried accessing nonexisting field (${name})`)
      return [name, fields[name](number, app.options.callbackUrl)]
    }),
  )
}
