import type { Attempt } from '../attempts/open-attempts.ts'

/** A first attempt, as it is opened; what matters of it is given. */
export const newAttempt = (given: Partial<Attempt> & { url: string }): Attempt => ({
  laneId: 'wbs_1',
  organizationId: 'org_1',
  id: 'wbd_1',
  number: 1,
  tries: 0,
  line: null,
  isProbe: false,
  probedMs: 0,
  isPaused: false,
  replayId: null,
  secrets: 'sec_1 sealed',
  readAt: performance.now(),
  eventId: 'evt_1',
  payload: { type: 'message.received', source: 'svc', body: Buffer.from('{}'), trace: null },
  ...given,
})
