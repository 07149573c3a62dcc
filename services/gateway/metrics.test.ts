import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from './testing/gateway.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startTestGateway()
})
afterAll(() => gateway.close())

/** How often requests of a route were answered so. */
async function answered(method: string, route: string, status: number) {
  const page = await gateway.app.probes.metrics.metrics()
  const line = page
    .split('\n')
    .filter((one) => one.startsWith('svc_http_request_seconds_count'))
    .find((one) =>
      [`method="${method}"`, `route="${route}"`, `status="${status}"`].every((label) => one.includes(label)),
    )
  return Number(line?.split(' ').at(-1) ?? 0)
}

test('a route is measured by its pattern, whatever its path holds', async () => {
  await gateway.ask('/v1/106540352242922/messages/msg_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD')
  expect(await answered('GET', '/v1/:phone_number_id/messages/:id', 401)).toBe(1)
})

test('what is nobody’s route is one series, whatever it was asked for', async () => {
  await gateway.ask('/v1/no/such/path')
  await gateway.ask('/nothing', { method: 'DELETE' })
  await gateway.ask('/v1/%zz')
  expect(await answered('other', 'none', 401)).toBe(3)
})

test('pages, files and callbacks outside /v1 are measured too, without their tokens', async () => {
  await gateway.ask('/setup/some-token')
  await gateway.ask('/upstream/callbacks', { body: '{}' })
  await gateway.ask('/upstream/callbacks', { body: '{}', headers: { 'x-hub-signature-256': 'sha256=wrong' } })
  await expect.poll(() => answered('POST', '/upstream/callbacks', 401)).toBe(2)
  await expect.poll(() => answered('GET', '/setup/:token', 404)).toBe(1)
  expect(await gateway.app.probes.metrics.metrics()).not.toContain('some-token')
})

test('what the gateway refuses by itself is counted by failure', async () => {
  await gateway.ask('/v1/me')
  const page = await gateway.app.probes.metrics.metrics()
  expect(page).toMatch(/svc_http_refusals_total\{failure="missing_api_key",service="gateway"\} [1-9]/)
})
