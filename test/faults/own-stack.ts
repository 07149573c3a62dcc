import { afterAll, beforeAll, expect } from 'vitest'
import { until } from '../journeys/client.ts'
import { type Receiver, startReceiver } from '../journeys/receiver.ts'
import { type StartedStack, startStack } from '../journeys/start-stack.ts'

export interface Own {
  stack: StartedStack
  receiver: Receiver
}

/** A stack with a receiver that the tests of a file have for themselves, to break it; there once they run. */
export function ownStack(): Own {
  const own: Partial<Own> = {}
  beforeAll(async () => {
    own.stack = await startStack()
    own.receiver = await startReceiver()
  })
  afterAll(async () => {
    await own.stack?.remove()
    own.receiver?.close()
  })
  return own as Own
}

/** Kills the first instance of a service, and waits for the one that is started in its place. */
export async function kill({ stack }: Pick<Own, 'stack'>, service: string) {
  const pidOf = () => stack.read().services[service]?.[0]?.pid
  const pid = pidOf()
  if (pid) process.kill(pid, 'SIGKILL')
  await until(() => expect(pidOf()).not.toBe(pid))
}
