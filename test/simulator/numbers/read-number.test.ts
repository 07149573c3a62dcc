import { expect, test } from 'vitest'
import { startTrial } from '../trial.ts'

test('reads the usual fields of a number, or those asked for', async () => {
  const { graph, number } = await startTrial()
  const path = `/v23.0/${number.phone_number_id}`
  const id = number.phone_number_id
  expect((await graph(number, 'GET', path)).body).toEqual({
    verified_name: 'Simulated Business',
    display_phone_number: number.display_phone_number,
    quality_rating: 'GREEN',
    id,
  })
  const asked = await graph(number, 'GET', `${path}?fields=status,code_verification_status,platform_type`)
  expect(asked.body).toEqual({
    status: 'CONNECTED',
    code_verification_status: 'VERIFIED',
    platform_type: 'CLOUD_API',
    id,
  })
})

test('refuses a field that does not exist, another token, and another id', async () => {
  const { graph, addNumber, number } = await startTrial()
  const path = `/v23.0/${number.phone_number_id}`
  expect((await graph(number, 'GET', `${path}?fields=colour`)).body.error?.message).toBe(
    '(#100) Tried accessing nonexisting field (colour)',
  )
  expect(await graph(await addNumber(), 'GET', path)).toMatchObject({ status: 403, body: { error: { code: 10 } } })
  expect(await graph(number, 'GET', '/v23.0/999999')).toMatchObject({
    status: 400,
    body: { error: { code: 100, error_subcode: 33 } },
  })
})
