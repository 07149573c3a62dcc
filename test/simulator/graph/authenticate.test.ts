import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { secret, startTrial } from '../trial.ts'

const proofOf = (token: string) => createHmac('sha256', secret).update(token).digest('hex')

test('a call without the proof is refused where the app demands it, one with a wrong proof everywhere', async () => {
  const { number, graph, set } = await startTrial()
  const read = (query: string) => graph(number, 'GET', `/v23.0/${number.phone_number_id}?fields=id${query}`)
  const wrong = '&appsecret_proof=00'
  expect(await read('')).toMatchObject({ status: 200 })
  expect(await read(wrong)).toMatchObject({ status: 400, body: { error: { code: 100 } } })
  await set({ require_proof: true })
  expect(await read('')).toMatchObject({ status: 400, body: { error: { code: 100 } } })
  expect(await read(wrong)).toMatchObject({ status: 400, body: { error: { code: 100 } } })
  const answer = await read(`&appsecret_proof=${proofOf(number.access_token)}`)
  expect(answer).toMatchObject({ status: 200, body: { id: number.phone_number_id } })
})
