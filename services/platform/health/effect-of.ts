import { lastMs } from '@app/shared/values/moments.ts'
import { z } from 'zod'

/** What a report does to a number: it is asked for in any case. */
export type Effect =
  | { kind: 'poll' }
  | { kind: 'disconnect' }
  /** `until`: what the platform said of the restriction's end. */
  | { kind: 'degrade'; until: Date | null }
  /** The business took the number from our app, or gave it back. `ofPhoneApp`: of its numbers, those that stay in the phone's app. */
  | { kind: 'remove'; ofPhoneApp: boolean }
  | { kind: 'restore' }

const degrading = new Set([131031, 368, 131042])
const disconnecting = new Set([0, 190, 33])

const removals = new Set(['ACCOUNT_DELETED', 'PARTNER_REMOVED', 'PARTNER_APP_UNINSTALLED'])
/** The phone got a new device, or was registered anew: it names the business account, and means what is in the phone's app. */
const phoneRemoval = 'ACCOUNT_OFFBOARDED'
const returns = new Set(['ACCOUNT_RECONNECTED', 'PARTNER_ADDED', 'PARTNER_APP_INSTALLED'])

const Update = z.looseObject({
  event: z.string(),
  restriction_info: z
    .array(
      z.looseObject({
        restriction_type: z.string().optional().catch(undefined),
        expiration: z.coerce
          .number()
          .max(lastMs / 1000)
          .optional()
          .catch(undefined),
      }),
    )
    .optional()
    .catch(undefined),
  ban_info: z.looseObject({ waba_ban_state: z.string() }).optional().catch(undefined),
  /** Which app a business installed or took off. */
  waba_info: z
    .looseObject({ partner_app_id: z.union([z.string(), z.int().transform(String)]).optional() })
    .optional()
    .catch(undefined),
})

interface Report {
  code: number | null
  change: { field: string; value?: unknown } | null
}

/** What the platform's error code or callback means, to our app, for the number that it is about. */
export function effectOf({ code, change }: Report, appId: string): Effect {
  if (code !== null) return effectOfCode(code)
  const update = change?.field === 'account_update' ? Update.safeParse(change.value).data : undefined
  if (!update) return { kind: 'poll' }
  const { event, restriction_info: restrictions = [], ban_info: ban, waba_info: tie } = update
  // The operator may have other apps, whose callbacks come here too.
  if (tie?.partner_app_id !== undefined && tie.partner_app_id !== appId) return { kind: 'poll' }
  if (removals.has(event) || event === phoneRemoval) return { kind: 'remove', ofPhoneApp: event === phoneRemoval }
  if (returns.has(event)) return { kind: 'restore' }
  if (event === 'ACCOUNT_RESTRICTION') return effectOfRestrictions(restrictions)
  if (event !== 'DISABLED_UPDATE') return { kind: 'poll' }
  if (ban?.waba_ban_state === 'DISABLE') return { kind: 'disconnect' }
  return ban?.waba_ban_state === 'REINSTATE' ? { kind: 'restore' } : { kind: 'poll' }
}

function effectOfCode(code: number): Effect {
  if (disconnecting.has(code)) return { kind: 'disconnect' }
  return degrading.has(code) ? { kind: 'degrade', until: null } : { kind: 'poll' }
}

/**
 * A business that may add no numbers, call nobody or have no utility templates still sends what else it has; so it is with
 * restrictions that are made later. One of no type is taken for the worse.
 */
const isOfSends = (type: string | undefined) => type === undefined || type.endsWith('_MESSAGING')

function effectOfRestrictions(restrictions: NonNullable<z.output<typeof Update>['restriction_info']>): Effect {
  const ofSends = restrictions.filter(({ restriction_type: type }) => isOfSends(type))
  if (restrictions.length > 0 && ofSends.length === 0) return { kind: 'poll' }
  const ends = ofSends.flatMap(({ expiration }) => (expiration ? [expiration * 1_000] : []))
  return { kind: 'degrade', until: ends.length > 0 ? new Date(Math.max(...ends)) : null }
}
