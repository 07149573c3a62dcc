import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { whenOverdue } from './overdue.ts'

test('what is called off when its time is over, and what has come by then is being read, does nothing', async () => {
  let acted = 0
  const callOff = whenOverdue(1, () => acted++)
  // Both are due when the process comes to its timers again.
  setTimeout(callOff, 1)
  const until = performance.now() + 20
  while (performance.now() < until);
  await sleep(20)
  expect(acted).toBe(0)
})
