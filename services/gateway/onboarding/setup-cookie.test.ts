import { expect, test } from 'vitest'
import { isToken, nameOf, setupCookie, tokenIn } from './setup-cookie.ts'
import type { Signup } from './signup-settings.ts'

const token = 'Zp0mJbHc1S5rKq0e3oZkq0G5w5m8n2x7c9v1b3nx7Qk'
const other = 'another-token-another-token'

test.each([
  [undefined, null],
  ['', null],
  [`svc_setup=${token}`, token],
  [`a=1;svc_setup=${token} ; b=2`, token],
  [`not_svc_setup=${other}; svc_setup_=${other}; svc_setup=${token}`, token],
  [`svc_setup=<b>; svc_setup=${token}`, token],
  [`SVC_SETUP=${token}`, null],
  ['svc_setup', null],
  [`svc_setup=${token}.${other}`, token],
  [`svc_setup=.<b>.${other}`, other],
])('of the cookies %j the newest token is %j', (cookies, expected) => {
  expect(tokenIn(cookies, null)).toBe(expected)
})

test('each link that a browser has open is found by its name, up to eight, of which the first goes', () => {
  const tokens = Array.from({ length: 9 }, (_, n) => `${n}`.padStart(43, 'x'))
  let cookies = `other=1; svc_setup=${token}`
  for (const one of [...tokens, tokens[8] ?? '']) cookies = setupCookie(one, cookies, { root: '' } as Signup)
  const kept = tokens.slice(1)
  expect(cookies).toBe(`svc_setup=${kept.toReversed().join('.')}; Path=/setup; HttpOnly; SameSite=Lax`)
  for (const one of kept) expect(tokenIn(cookies, nameOf(one))).toBe(one)
  for (const gone of [tokens[0] ?? '', token]) expect(tokenIn(cookies, nameOf(gone))).toBeNull()
})

test.each([
  ['x'.repeat(19), false],
  ['x'.repeat(20), true],
  ['x'.repeat(128), true],
  ['x'.repeat(129), false],
  [`${'x'.repeat(20)}; Domain=example`, false],
  [`${'x'.repeat(20)}\n`, false],
])('whether %j can be a token: %s', (text, is) => {
  expect(isToken(text)).toBe(is)
})

test('where visitors come without https, or to no path of a proxy, the cookie is for that', () => {
  const cookie = (isSecure: boolean, root: string) => setupCookie(token, undefined, { isSecure, root } as Signup)
  expect(cookie(false, '')).toBe(`svc_setup=${token}; Path=/setup; HttpOnly; SameSite=Lax`)
  expect(cookie(true, '/chat')).toBe(`svc_setup=${token}; Path=/chat/setup; HttpOnly; SameSite=Lax; Secure`)
})
