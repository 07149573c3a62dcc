import { expect, test } from 'vitest'
import { verdictOf } from './report.ts'

const advisory = (severity: string, ...paths: string[]) => ({
  module_name: 'left-pad',
  severity,
  title: 'Pads too far',
  url: 'https://advisories.example/1',
  findings: [{ version: '1.0.0', paths }],
})
const report = (...advisories: object[]) =>
  verdictOf(JSON.stringify({ advisories: Object.fromEntries(advisories.map((one, n) => [String(n), one])) }))

test('a grave advisory on what a service runs with is found, with the way it came in', () => {
  const line =
    'high: left-pad 1.0.0: Pads too far (services__gateway>fastify>left-pad and 1 more) https://advisories.example/1'
  expect(report(advisory('high', 'services__gateway>fastify>left-pad', 'shared>left-pad'))).toEqual({
    kind: 'found',
    lines: [line],
  })
  expect(report(advisory('critical', 'deploy>left-pad'))).toMatchObject({ kind: 'found' })
})

test('a lesser one, and one on what tests alone depend on, are let pass', () => {
  expect(report(advisory('moderate', 'shared>left-pad'))).toEqual({ kind: 'clean' })
  expect(report(advisory('high', 'test>ajv>left-pad', 'test__bench>left-pad', '.>vitest>left-pad'))).toEqual({
    kind: 'clean',
  })
  expect(report()).toEqual({ kind: 'clean' })
})

test.each([
  ['{"error":{"code":"ERR_PNPM_AUDIT_BAD_RESPONSE","message":"responded with 405"}}', 'responded with 405'],
  ['a warning\nrequest failed, reason: getaddrinfo ENOTFOUND\n', 'request failed, reason: getaddrinfo ENOTFOUND'],
  ['', 'no answer'],
])('where there is no answer, it says so: %s', (output, why) => {
  expect(verdictOf(output)).toEqual({ kind: 'skipped', why })
})
