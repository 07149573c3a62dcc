import { runCode } from '@app/test/run-code.ts'
import { expect, test } from 'vitest'

test('a service that is told to stop is ready no more, and takes its steps in order, though one fails and it is told again', async () => {
  const code = `
    import { createLog } from './log.ts'
    import { startProbes } from './probes.ts'
    import { stopInOrder } from './stop.ts'
    const probes = await startProbes(0, '127.0.0.1')
    const readiness = async () => console.log(await (await fetch(probes.url + '/readyz')).text())
    const slow = () => new Promise((resolve) => setTimeout(resolve, 50)).then(() => console.log('slow'))
    const fails = () => {
      process.kill(process.pid, 'SIGINT')
      throw new Error('a step that fails')
    }
    stopInOrder({ log: createLog('test', 'silent'), probes }, [
      readiness, fails, [slow, () => console.log('together')], () => console.log('last'),
    ])
    process.kill(process.pid, 'SIGTERM')
  `
  const { exitCode, said } = await runCode(import.meta.dirname, code)
  expect([exitCode, said]).toEqual([0, 'not ready: stopping\n\ntogether\nslow\nlast\n'])
})
