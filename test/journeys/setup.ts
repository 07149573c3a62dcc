import type { TestProject } from 'vitest/node'
import { secretsIn } from '../fuzz/log-secrets.ts'
import { projectEnds } from '../results-reporter.ts'
import { ofEach, type Stack, startStack } from './start-stack.ts'

declare module 'vitest' {
  interface ProvidedContext {
    stack: Stack
    stackDir: string
  }
}

/** One stack for all journeys: two replicas of everything, as an operator would run it. */
export default async function setup(project: TestProject) {
  const stack = await startStack(['--replicas', ofEach(2)])
  project.provide('stack', stack.read())
  project.provide('stackDir', stack.dataDir)
  // Idle, it would take the time of the other tests until the last of them.
  projectEnds.subscribe((name) => void (name === project.name && stack.stop()))
  return async () => {
    await stack.stop()
    const found = secretsIn(stack.dataDir)
    await stack.remove()
    if (found.length > 0) throw new Error(`Secrets in the logs of the run:\n${found.slice(0, 20).join('\n')}`)
  }
}
