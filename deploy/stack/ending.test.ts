import { expect, test } from 'vitest'
import { createEnding } from './ending.ts'

test('what was started last is stopped first, once, also when it is asked for twice', async () => {
  const ending = createEnding()
  const stopped: string[] = []
  const start = (name: string) =>
    ending.begin(async () => ({
      async stop() {
        await Promise.resolve()
        stopped.push(name)
      },
    }))
  await start('servers')
  await start('services')
  expect(ending.isStopping()).toBe(false)
  const first = ending.stop()
  expect(ending.isStopping()).toBe(true)
  await ending.stop()
  expect(stopped).toEqual(['services', 'servers'])
  await first
})

test('what fails to start keeps nothing else from being stopped', async () => {
  const ending = createEnding()
  let isStopped = false
  await ending.begin(async () => ({ stop: async () => void (isStopped = true) }))
  await expect(ending.begin(() => Promise.reject(new Error('no port')))).rejects.toThrow('no port')
  await ending.stop()
  expect(isStopped).toBe(true)
})

test('what is still starting is stopped when it has started', async () => {
  const ending = createEnding()
  const { promise, resolve } = Promise.withResolvers<{ stop: () => Promise<void> }>()
  let isStopped = false
  const starting = ending.begin(() => promise)
  const stopping = ending.stop()
  resolve({ stop: async () => void (isStopped = true) })
  await stopping
  expect(isStopped).toBe(true)
  await starting
})

test('nothing is started any more when all is being stopped', async () => {
  const ending = createEnding()
  await ending.stop()
  await expect(ending.begin(async () => ({ stop: async () => {} }))).rejects.toThrow('Stopped while starting.')
})
