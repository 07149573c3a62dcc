import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { createLookUp } from './look-up.ts'

let now = 1_000
const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
afterEach(() => (now += 1_000_000))
afterAll(() => clock.mockRestore())

function question() {
  const { promise, resolve, reject } = Promise.withResolvers<{ value: string; keptMs: number }>()
  return { ask: vi.fn(() => promise), resolve, reject }
}
const answering = (value: string, keptMs = 2_000) =>
  vi.fn((_before: string | undefined) => Promise.resolve({ value, keptMs }))

test('an answer counts from when its question was sent, not from when it came', async () => {
  const lookUp = createLookUp<string>({ max: 10 })
  const slow = question()
  const first = lookUp.get('key', slow.ask)
  now += 1_500
  slow.resolve({ value: 'old', keptMs: 2_000 })
  expect(await first).toMatchObject({ value: 'old' })
  now += 499
  expect(lookUp.get('key', answering('new'))).toMatchObject({ value: 'old' })
  now += 1
  const again = answering('new')
  expect(await lookUp.get('key', again)).toMatchObject({ value: 'new' })
  expect(again).toHaveBeenCalledExactlyOnceWith('old')
})

test('questions for the same key are asked once', async () => {
  const lookUp = createLookUp<string>({ max: 10 })
  const slow = question()
  const answers = Promise.all([lookUp.get('key', slow.ask), lookUp.get('key', slow.ask), lookUp.get('key', slow.ask)])
  slow.resolve({ value: 'one', keptMs: 2_000 })
  expect((await answers).map(({ value }) => value)).toEqual(['one', 'one', 'one'])
  expect(slow.ask).toHaveBeenCalledOnce()
})

test('whoever joins a question that is out for too long asks again', async () => {
  const lookUp = createLookUp<string>({ max: 10 })
  const slow = question()
  const early = lookUp.get('key', slow.ask)
  now += 2_000
  const late = lookUp.get('key', answering('of now'))
  slow.resolve({ value: 'of then', keptMs: 2_000 })
  expect(await early).toMatchObject({ value: 'of then' })
  expect(await late).toMatchObject({ value: 'of now' })
})

test('an answer that is kept for a shorter time than it took is still the answer', async () => {
  const lookUp = createLookUp<string>({ max: 10 })
  const slow = question()
  const answer = lookUp.get('key', slow.ask)
  now += 300
  slow.resolve({ value: 'absent', keptMs: 200 })
  expect(await answer).toMatchObject({ value: 'absent' })
})

test('a failure is not kept', async () => {
  const lookUp = createLookUp<string>({ max: 10 })
  const broken = question()
  const answer = lookUp.get('key', broken.ask)
  broken.reject(new Error('away'))
  await expect(answer).rejects.toThrow('away')
  expect(await lookUp.get('key', answering('back'))).toMatchObject({ value: 'back' })
})
