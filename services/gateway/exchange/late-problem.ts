import { Problem } from '@app/shared/api/problem.ts'

/** For what is turned away because the event loop is late. The client learns when to come again, the log alone why. */
export const lateProblem = (): Problem =>
  new Problem('service_unavailable', { cause: new Error('the event loop is late') })
