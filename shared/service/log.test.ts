import { runCode } from '@app/test/run-code.ts'
import { expect, test } from 'vitest'

test('of an error, and of its causes, the log has no field but those that are known to hold no secret', async () => {
  const code = `
    import { createLog } from './log.ts'
    const log = createLog('test', 'info')
    const cause = Object.assign(new TypeError('below'), { body: 'a secret' })
    const err = Object.assign(new Error('above', { cause }), { code: 23505, query: 'a secret', parameters: ['a secret'] })
    log.error({ err }, 'line')
    log.error({ err: 'thrown' }, 'other')
    log.flush()
  `
  const { said } = await runCode(import.meta.dirname, code)
  const lines = said
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { err: unknown })
  const stack = expect.stringContaining(' at ')
  const cause = { type: 'TypeError', message: 'below', stack }
  expect(lines.map(({ err }) => err)).toEqual([
    { type: 'Error', message: 'above', code: '23505', stack, cause },
    { type: 'string', message: 'thrown' },
  ])
})
