import type { Dispatcher } from 'undici'
import { expect, onTestFinished, test, vi } from 'vitest'
import { askPatiently } from './ask-patiently.ts'

const answered = (statusCode: number) =>
  ({ statusCode, body: { dump: async () => undefined } }) as unknown as Dispatcher.ResponseData

/** The first look at the clock is before the first try. */
function failLate() {
  const clock = vi.spyOn(performance, 'now').mockReturnValueOnce(0).mockReturnValue(5_001)
  onTestFinished(() => clock.mockRestore())
}

test('what is refused, or fails, so late that somebody has waited for long is not asked again', async () => {
  const busy = vi.fn(async () => answered(503))
  failLate()
  expect(await askPatiently(busy)).toMatchObject({ statusCode: 503 })
  const gone = vi.fn(() => Promise.reject(new Error('other side closed')))
  failLate()
  await expect(askPatiently(gone)).rejects.toThrow('other side closed')
  expect(busy.mock.calls.length + gone.mock.calls.length).toBe(2)
})

test.each([429, 500, 502, 503, 504])('what is answered %i is asked again', async (status) => {
  let asked = 0
  expect(await askPatiently(async () => answered(++asked === 1 ? status : 200))).toMatchObject({ statusCode: 200 })
})

test('a store that is away for longer is told of as it answered last', async () => {
  const busy = vi.fn(async () => answered(503))
  expect(await askPatiently(busy)).toMatchObject({ statusCode: 503 })
  expect(busy).toHaveBeenCalledTimes(4)
})
