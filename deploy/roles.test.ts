import { expect, test } from 'vitest'
import { urlOfService } from './roles.ts'

test.each([
  ['postgres://postgres:p@127.0.0.1:5432/postgres', 'postgres://svc_platform:a%2Fb%40%24%26c@127.0.0.1:5432/postgres'],
  ['postgres://127.0.0.1/postgres', 'postgres://svc_platform:a%2Fb%40%24%26c@127.0.0.1/postgres'],
  ['postgres://one@[::1]:5432/m', 'postgres://svc_platform:a%2Fb%40%24%26c@[::1]:5432/m'],
  [
    'postgresql://me:p%40@one:5432,two:5433,three/m?sslmode=verify-full',
    'postgresql://svc_platform:a%2Fb%40%24%26c@one:5432,two:5433,three/m?sslmode=verify-full',
  ],
  ['postgres://me:p@one?user=x@y', 'postgres://svc_platform:a%2Fb%40%24%26c@one?user=x@y'],
])('a service logs in to the servers of %s with its own name and password', (adminUrl, url) => {
  expect(urlOfService(adminUrl, 'platform', 'a/b@$&c')).toBe(url)
})
