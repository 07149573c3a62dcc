import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { logLines } from '../testing/log-lines.ts'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'

let gateway: TestGateway
beforeAll(async () => (gateway = await startTestGateway()))
afterAll(() => gateway.close())
afterEach(() => void vi.restoreAllMocks())

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const headers = { traceparent: `00-${traceId}-00f067aa0ba902b7-00` }

test('the log tells whose a request was, what became of it and why: of what is ours to mend, by level', async () => {
  const { text: key, id, organizationId } = gateway.platform.issueKey()
  const lines = logLines(gateway.app)
  const broken = new Error('a fault of ours')
  const ask = (path: string, apiKey?: string) => gateway.ask(path, { key: apiKey, headers })
  const refused = await ask('/v1/me?secret=1')
  const unserved = await ask('/v1/nobody', key)
  vi.spyOn(gateway.app.inFlight, 'during').mockRejectedValueOnce(broken)
  const failed = await ask('/v1/tagged?text=a', key)
  const done = await ask('/v1/tagged?text=a', key)
  const line = { msg: 'http', trace: traceId, method: 'GET', durationMs: expect.any(Number) }
  const whose = { organization: organizationId, key: id }
  const requests = [refused, unserved, failed, done].map((answer) => ({ request: answer.headers['x-request-id'] }))
  expect(lines).toEqual([
    { ...line, ...requests[0], level: 'debug', route: '/v1/me', status: 401, problem: 'missing_api_key' },
    {
      ...line,
      ...requests[1],
      ...whose,
      level: 'warn',
      route: '/v1/nobody',
      status: 503,
      problem: 'service_unavailable',
      cause: expect.any(String),
    },
    {
      ...line,
      ...requests[2],
      ...whose,
      level: 'error',
      route: '/v1/tagged',
      status: 500,
      problem: 'internal_error',
      err: broken,
    },
    { ...line, ...requests[3], ...whose, level: 'debug', route: '/v1/tagged', status: 200 },
  ])
})
