import { expect, test } from 'vitest'
import { startTrial, type Trial } from '../trial.ts'

const open = ({ graph, number }: Trial, query = 'file_name=a.png&file_length=7&file_type=image/png', app = '1000') =>
  graph(number, 'POST', `/v23.0/${app}/uploads?${query}`)

async function put(
  { url, number }: Trial,
  id: unknown,
  bytes: string,
  headers: Record<string, string> = { file_offset: '0' },
) {
  const response = await fetch(`${url}/v23.0/${String(id)}`, {
    method: 'POST',
    headers: { authorization: `OAuth ${number.access_token}`, 'content-type': 'image/png', ...headers },
    body: bytes,
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

test('makes a handle of a file, which a template then takes as its sample', async () => {
  const trial = await startTrial()
  const { graph, number } = trial
  const { body: session } = await open(trial)
  expect(session).toEqual({ id: expect.stringMatching(/^upload:/) })
  expect((await graph(number, 'GET', `/v23.0/${String(session['id'])}`)).body).toEqual({ ...session, file_offset: 0 })
  const { status, body } = await put(trial, session['id'], 'picture')
  expect({ status, body }).toEqual({ status: 200, body: { h: expect.stringMatching(/^4::/) } })
  expect((await graph(number, 'GET', `/v23.0/${String(session['id'])}`)).body).toMatchObject({ file_offset: 7 })

  const components = [
    { type: 'HEADER', format: 'IMAGE', example: { header_handle: [body['h']] } },
    { type: 'BODY', text: 'Look at this.' },
  ]
  const template = { name: 'picture', language: 'en_US', category: 'MARKETING', components }
  const created = await graph(number, 'POST', `/v23.0/${number.business_account_id}/message_templates`, template)
  expect(created).toMatchObject({ status: 200 })
  const shown = await graph(number, 'GET', `/v23.0/${String(created.body['id'])}?fields=components`)
  const [header] = shown.body['components'] as Array<{ example: { header_handle: string[] } }>
  const sample = await fetch(header?.example.header_handle[0] ?? '')
  expect([sample.headers.get('content-type'), await sample.text()]).toEqual(['image/png', 'picture'])
})

test('refuses another app, a session that is none, and bytes that are too few or begin elsewhere', async () => {
  const trial = await startTrial()
  const refused = { status: 400, body: { error: { code: 100 } } }
  expect(await open(trial, undefined, '999')).toMatchObject(refused)
  expect(await open(trial, 'file_name=a&file_length=7&file_type=image/gif')).toMatchObject(refused)
  expect(await open(trial, 'file_name=a&file_length=0&file_type=image/png')).toMatchObject(refused)
  expect(await open(trial, 'file_name=a&file_length=5242881&file_type=image/png')).toMatchObject(refused)
  expect(await open(trial, 'file_length=7&file_type=image/png')).toMatchObject(refused)
  expect(await put(trial, 'upload:none', 'picture')).toMatchObject(refused)
  const { body: session } = await open(trial)
  expect(await put(trial, session['id'], 'pic')).toMatchObject(refused)
  expect(await put(trial, session['id'], 'picture', {})).toMatchObject(refused)
  expect(await put(trial, session['id'], 'picture', { file_offset: '3' })).toMatchObject(refused)
  expect(await put(trial, session['id'], 'picture')).toMatchObject({ status: 200 })
})
