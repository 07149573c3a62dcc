import { expect, test } from 'vitest'
import { isToken, setupCookie, tokenIn } from './setup-cookie.ts'
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
])('of the cookies %j the token is %j', (cookies, expected) => {
  expect(tokenIn(cookies)).toBe(expected)
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
  const cookie = (isSecure: boolean, root: string) => setupCookie(token, { isSecure, root } as Signup)
  expect(cookie(false, '')).toBe(`svc_setup=${token}; Path=/setup; HttpOnly; SameSite=Lax`)
  expect(cookie(true, '/chat')).toBe(`svc_setup=${token}; Path=/chat/setup; HttpOnly; SameSite=Lax; Secure`)
})
