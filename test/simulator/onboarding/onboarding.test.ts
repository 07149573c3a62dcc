import { expect, test } from 'vitest'
import { startTrial, type Trial } from '../trial.ts'

const exchange = (trial: Trial, code: string, more = {}) => {
  const query = new URLSearchParams({ client_id: '1000', client_secret: 'app-secret', code, ...more })
  return trial.graph({ access_token: '' }, 'GET', `/v23.0/oauth/access_token?${query.toString()}`)
}

async function walk(trial: Trial, body: object = { choice: 'number' }) {
  const answer = await fetch(`${trial.url}/signup/finish`, { method: 'POST', body: JSON.stringify(body) })
  return (await answer.json()) as { event: string; code: string; data: { phone_number_id: string; waba_id: string } }
}

async function token(trial: Trial, code: string) {
  const { body } = await exchange(trial, code)
  return { access_token: String(body['access_token']) }
}

test("a dialog's code buys the number's token, once", async () => {
  const trial = await startTrial()
  const { event, code, data } = await walk(trial)
  expect(event).toBe('FINISH')
  const owner = await token(trial, code)
  const read = await trial.graph(owner, 'GET', `/v23.0/${data.phone_number_id}?fields=status`)
  expect(read.body).toEqual({ id: data.phone_number_id, status: 'PENDING' })
  expect(await exchange(trial, code)).toMatchObject({
    status: 400,
    body: { error: { code: 100, error_subcode: 36_009 } },
  })
})

test('an old code, an unknown one and a wrong secret buy nothing', async () => {
  const trial = await startTrial({ settings: { signup_code_ms: 0 } })
  const { code } = await walk(trial)
  expect((await exchange(trial, code)).body.error).toMatchObject({ code: 100, error_subcode: 36_007 })
  expect((await exchange(trial, 'AQx')).body.error).toMatchObject({ code: 100, error_subcode: 36_008 })
  expect((await exchange(trial, code, { client_secret: 'no' })).body.error).toMatchObject({ code: 1 })
  expect((await exchange(trial, code, { client_id: '1' })).body.error).toMatchObject({ code: 101 })
})

test('the numbers of a business account are listed in pages, to its own token alone', async () => {
  const trial = await startTrial()
  const business_account_id = trial.number.business_account_id
  const second = await trial.addNumber({ business_account_id })
  const path = `/v23.0/${business_account_id}/phone_numbers?fields=status&limit=1`
  const { body } = await trial.graph(trial.number, 'GET', path)
  const { paging } = body as unknown as { paging: { next: string; cursors: { after: string } } }
  expect(body['data']).toEqual([{ id: trial.number.phone_number_id, status: 'CONNECTED' }])
  const rest = await trial.graph(second, 'GET', `${path}&after=${paging.cursors.after}`)
  expect(rest.body).toMatchObject({ data: [{ id: second.phone_number_id }] })
  expect(rest.body['paging']).not.toHaveProperty('next')
  expect(await trial.graph(await trial.addNumber(), 'GET', path)).toMatchObject({ status: 403 })
})

test('a business account without a number lists none until its status is set', async () => {
  const trial = await startTrial()
  const { event, code, data } = await walk(trial, { choice: 'account_only' })
  expect(event).toBe('FINISH_ONLY_WABA')
  expect(data).not.toHaveProperty('phone_number_id')
  const { body } = await trial.graph(await token(trial, code), 'GET', `/v23.0/${data.waba_id}/phone_numbers`)
  expect(body['data']).toEqual([])
})

const registering = (trial: Trial, number: { phone_number_id: string; access_token: string }, pin = '123456') =>
  trial.graph(number, 'POST', `/v23.0/${number.phone_number_id}/register`, { messaging_product: 'whatsapp', pin })

test('the first registration sets the PIN, and later ones must match it', async () => {
  const trial = await startTrial()
  const number = await trial.addNumber({ status: 'PENDING' })
  expect((await registering(trial, number, '12345')).body.error).toMatchObject({ code: 100 })
  expect(await registering(trial, number)).toMatchObject({ status: 200, body: { success: true } })
  const { body } = await trial.graph(number, 'GET', `/v23.0/${number.phone_number_id}?fields=status,is_pin_enabled`)
  expect(body).toMatchObject({ status: 'CONNECTED', is_pin_enabled: true })
  for (const code of [133_005, 133_005, 133_005, 133_009])
    expect((await registering(trial, number, '000000')).body.error).toMatchObject({ code })
})

test('an unverified number, one just deregistered and the 11th call are refused', async () => {
  const trial = await startTrial()
  const unverified = await trial.addNumber({ status: 'UNVERIFIED' })
  expect((await registering(trial, unverified)).body.error).toMatchObject({ code: 133_006 })
  const { number } = trial
  const leave = () => trial.graph(number, 'POST', `/v23.0/${number.phone_number_id}/deregister`, {})
  expect((await leave()).body).toEqual({ success: true })
  expect((await leave()).body.error).toMatchObject({ code: 133_010 })
  for (let call = 3; call <= 10; call++)
    expect((await registering(trial, number)).body.error).toMatchObject({ code: 133_015 })
  expect((await registering(trial, number)).body.error).toMatchObject({ code: 133_016 })
})

test("the phone app's number is not registered, and each sync is asked for once", async () => {
  const trial = await startTrial()
  const { code, data } = await walk(trial, { choice: 'business_app' })
  const owner = await token(trial, code)
  const { body } = await trial.graph(owner, 'GET', `/v23.0/${data.waba_id}/phone_numbers?fields=is_on_biz_app`)
  const [listed] = body['data'] as Array<{ id: string; is_on_biz_app: boolean }>
  const number = { ...owner, phone_number_id: listed?.id ?? '' }
  expect(listed?.is_on_biz_app).toBe(true)
  expect((await registering(trial, number)).body.error).toMatchObject({ code: 100 })
  const sync = (sync_type: string) =>
    trial.graph(number, 'POST', `/v23.0/${number.phone_number_id}/smb_app_data`, {
      messaging_product: 'whatsapp',
      sync_type,
    })
  expect((await sync('history')).status).toBe(200)
  expect((await sync('smb_app_state_sync')).status).toBe(200)
  expect((await sync('history')).body.error).toMatchObject({ code: 2_593_107 })
})

test('a status that is told comes as its callback', async () => {
  const trial = await startTrial()
  const { phone_number_id, business_account_id } = trial.number
  await trial.control('POST', 'numbers', { phone_number_id, status: 'RESTRICTED', tell: true })
  await trial.settled()
  expect(trial.receiver.changes()).toMatchObject([
    { account: business_account_id, field: 'account_update', value: { event: 'ACCOUNT_RESTRICTION' } },
  ])
})
