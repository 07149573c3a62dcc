import { z } from 'zod'
import { isUserId } from './messages/recipient.ts'

/** A fault and which requests of the platform's API meet it; the wire shape of `/control/faults`. */
export const FaultRule = z.strictObject({
  match: z.strictObject({
    /** The recipient: a phone number, of which the digits count, or a user id. */
    to: z.string().min(1).optional(),
    /** The type of message; `read` for a read receipt. */
    type: z.string().min(1).optional(),
    /** A part of the request's path. */
    path: z.string().min(1).optional(),
  }),
  fault: z.discriminatedUnion('kind', [
    /** With a code, the platform's own refusal; with a status alone, a body that is not in its shape. */
    z.strictObject({
      kind: z.literal('error'),
      code: z.int().optional(),
      status: z.int().min(200).max(599).optional(),
    }),
    /** Nothing happens, no answer comes, and after `ms` the connection drops. */
    z.strictObject({ kind: z.literal('timeout_before'), ms: milliseconds(30_000) }),
    /** The send is accepted and its statuses come, but the answer does not. */
    z.strictObject({ kind: z.literal('timeout_after_accept'), ms: milliseconds(30_000) }),
    /** The connection is reset before anything happens. */
    z.strictObject({ kind: z.literal('reset') }),
    /** Handled `ms` later. */
    z.strictObject({ kind: z.literal('delay'), ms: milliseconds(1_000) }),
  ]),
  times: z.int().min(1).default(1),
})
export type FaultRule = z.output<typeof FaultRule>
export type Fault = FaultRule['fault']

function milliseconds(byDefault: number) {
  return z.int().min(0).max(600_000).default(byDefault)
}

export interface Meeting {
  path: string
  type: string | undefined
  to: string | undefined
}

export type Faults = ReturnType<typeof createFaults>

/** The faults that are laid, in the order in which they were. */
export function createFaults() {
  let rules: FaultRule[] = []
  return {
    add: (rule: FaultRule) => void rules.push({ ...rule }),
    clear: () => {
      rules = []
    },
    all: () => rules,
    /** The first fault that the request meets, used up by one. */
    take: (meeting: Meeting): Fault | undefined => {
      const rule = rules.find(({ match }) => meets(match, meeting))
      if (!rule) return undefined
      rule.times--
      if (rule.times === 0) rules = rules.filter((other) => other !== rule)
      return rule.fault
    },
  }
}

const meets = (match: FaultRule['match'], { path, type, to }: Meeting) =>
  (match.path === undefined || path.includes(match.path)) &&
  (match.type === undefined || match.type === type) &&
  (match.to === undefined || (to !== undefined && bareId(match.to) === bareId(to)))

const bareId = (to: string) => (isUserId(to) ? to : to.replaceAll(/\D/g, ''))
