import { expect, test } from 'vitest'
import { startTrial } from '../trial.ts'

test('keeps every callback back as long as the setting says', async () => {
  const { receive, settled, receiver, number } = await startTrial({ settings: { callback_delay_ms: 700 } })
  const wroteAt = performance.now()
  await receive(number)
  expect(receiver.callbacks).toEqual([])
  await settled()
  expect(performance.now() - wroteAt).toBeGreaterThan(690)
  expect(receiver.messages()).toHaveLength(1)
})

test('lets callbacks overtake each other, and loses none', async () => {
  const { receive, settled, receiver, number } = await startTrial({ settings: { callback_jitter_ms: 300 } })
  const ids: string[] = []
  for (let count = 0; count < 40; count++) ids.push(await receive(number))
  await settled()
  const heard = receiver.messages().map(({ id }) => String(id))
  expect(heard).not.toEqual(ids)
  expect(heard.toSorted()).toEqual(ids.toSorted())
})
