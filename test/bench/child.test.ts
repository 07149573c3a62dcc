import { expect, test } from 'vitest'
import { startChild, stopChildren } from './child.ts'
import type { Hello } from './floors/hello.ts'

test('asks a program, and tells what it throws', async () => {
  const hello = startChild<Hello>('floors/hello.ts')
  const { url } = await hello.ask('start', undefined)
  expect(await (await fetch(url)).json()).toEqual({ hello: 'world' })
  await expect(hello.ask('begin' as 'start', undefined)).rejects.toThrow('there is no command begin')
  await hello.stop()
  await expect(fetch(url)).rejects.toThrow()
  await expect(hello.ask('start', undefined)).rejects.toThrow('has ended')
})

test('rejects what is still asked when the program ends', async () => {
  const hello = startChild<Hello>('floors/hello.ts')
  const asked = hello.ask('start', undefined)
  process.kill(hello.pid, 'SIGKILL')
  await expect(asked).rejects.toThrow('ended (SIGKILL)')
})

test('ends all that were left', async () => {
  const left = startChild<Hello>('floors/hello.ts')
  await left.ask('start', undefined)
  await stopChildren()
  expect(() => process.kill(left.pid, 0)).toThrow('ESRCH')
})
