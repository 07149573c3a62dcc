import { expect, test } from 'vitest'
import { z } from 'zod'
import { createSignup, signupSettings } from './signup-settings.ts'

const settings = z.object(signupSettings)

test.each([
  ['https://api.example', true, ''],
  ['https://api.example/chat/', true, '/chat'],
  ['http://127.0.0.1:8080', false, ''],
])('at %s the cookie is secure: %s, below "%s"', (publicUrl, isSecure, root) => {
  const signup = createSignup(settings.parse({ UPSTREAM_APP_ID: '1000' }), publicUrl)
  expect(signup).toMatchObject({ isSecure, root, appId: '1000', configId: undefined })
})

test.each(['[]', 'null', '1', '"{}"', '{', ''])('extras that are no JSON object are refused: %s', (extras) => {
  const given = { UPSTREAM_APP_ID: '1000', UPSTREAM_SIGNUP_EXTRAS: extras }
  expect(settings.safeParse(given).error?.issues).toMatchObject([{ path: ['UPSTREAM_SIGNUP_EXTRAS'] }])
})
