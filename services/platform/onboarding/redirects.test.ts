import { expect, test } from 'vitest'
import type { Link } from '../setup-links/find-link.ts'
import { failureUrlOf, successUrlOf } from './redirects.ts'

const to = (url: string) =>
  ({ id: 'csl_1', customerId: 'cus_1', successRedirectUrl: url, failureRedirectUrl: url }) as Link

test.each([
  ['none', 'https://app.example/ok', ''],
  ['an empty one', 'https://app.example/ok?', ''],
  [
    'what is written in several ways',
    'https://app.example/ok?to=a%20b&sig=x/y~(%2B)&flag',
    'to=a%20b&sig=x/y~(%2B)&flag&',
  ],
  ['names of ours', 'https://app.example/ok?status=1&a=1&customer%5Fid=2', 'a=1&'],
])('of the query of a redirect URL, %s, what is not ours stays as it is', (_what, url, theirs) => {
  const ours = 'customer_id=cus_1&setup_link_id=csl_1&status='
  expect(successUrlOf(to(url), '106')).toBe(`https://app.example/ok?${theirs}${ours}success&phone_number_id=106`)
  expect(failureUrlOf(to(`${url}#end`), 'failed')).toBe(`https://app.example/ok?${theirs}${ours}failed#end`)
})
