import { createHash } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../../until.ts'
import { startTrial, type Trial } from '../trial.ts'

const png = { type: 'image/png', bytes: 'picture' }

async function uploaded({ upload, number }: Trial, file: Parameters<Trial['upload']>[1] = png) {
  const { status, body } = await upload(number, file)
  expect(status).toBe(200)
  return String(body['id'])
}

const download = async (url: unknown, token?: string) => {
  const response = await fetch(
    String(url),
    token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } },
  )
  return { status: response.status, text: await response.text(), type: response.headers.get('content-type') }
}

test('takes a file, tells where it is, and gives back its bytes to the bearer alone', async () => {
  const trial = await startTrial()
  const { graph, addNumber, number } = trial
  const bytes = Buffer.alloc(3_000_000, 'abc')
  const id = await uploaded(trial, { type: 'image/jpeg', bytes })
  const { body } = await graph(number, 'GET', `/v23.0/${id}?phone_number_id=${number.phone_number_id}`)
  expect(body).toEqual({
    messaging_product: 'whatsapp',
    url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/whatsapp_business\/attachments\/\?mid=/),
    mime_type: 'image/jpeg',
    sha256: createHash('sha256').update(bytes).digest('hex'),
    file_size: '3000000',
    id,
  })
  const url = String(body['url'])
  expect(await download(url, number.access_token)).toMatchObject({
    status: 200,
    type: 'image/jpeg',
    text: bytes.toString(),
  })
  expect(await download(url)).toMatchObject({ status: 401 })
  expect(await download(url, (await addNumber()).access_token)).toMatchObject({ status: 404 })
  expect(await download(`${url}0`, number.access_token)).toMatchObject({ status: 404 })
})

test('lets the URL die when its time is over; looking up again makes another', async () => {
  const trial = await startTrial({ settings: { media_url_ttl_ms: 40 } })
  const { graph, set, number } = trial
  const id = await uploaded(trial)
  const { body } = await graph(number, 'GET', `/v23.0/${id}`)
  await until(async () => expect(await download(body['url'], number.access_token)).toMatchObject({ status: 404 }))
  await set({ media_url_ttl_ms: 60_000 })
  const again = await graph(number, 'GET', `/v23.0/${id}`)
  expect(await download(again.body['url'], number.access_token)).toMatchObject({ status: 200, text: 'picture' })
})

test('forgets a deleted file, its URL too', async () => {
  const trial = await startTrial()
  const { graph, number } = trial
  const id = await uploaded(trial)
  const { body } = await graph(number, 'GET', `/v23.0/${id}`)
  expect(await graph(number, 'DELETE', `/v23.0/${id}`)).toEqual({ status: 200, body: { success: true } })
  expect(await download(body['url'], number.access_token)).toMatchObject({ status: 404 })
  const gone = { status: 400, body: { error: { code: 100, error_subcode: 33 } } }
  expect(await graph(number, 'GET', `/v23.0/${id}`)).toMatchObject(gone)
  expect(await graph(number, 'DELETE', `/v23.0/${id}`)).toMatchObject(gone)
})

test('keeps a number from the files of another', async () => {
  const trial = await startTrial()
  const { graph, addNumber, number } = trial
  const id = await uploaded(trial)
  const other = await addNumber()
  for (const method of ['GET', 'DELETE'])
    expect(await graph(other, method, `/v23.0/${id}`)).toMatchObject({ status: 400, body: { error: { code: 100 } } })
  const wrong = await graph(number, 'GET', `/v23.0/${id}?phone_number_id=${other.phone_number_id}`)
  expect(wrong).toMatchObject({ status: 400, body: { error: { code: 100 } } })
})

test('takes the type that the field names, without its parameters', async () => {
  const trial = await startTrial()
  const id = await uploaded(trial, { type: 'application/octet-stream', field: 'audio/ogg; codecs=opus' })
  const { body } = await trial.graph(trial.number, 'GET', `/v23.0/${id}`)
  expect(body['mime_type']).toBe('audio/ogg')
})

test('refuses other types, empty files, and files that are too large for their kind', async () => {
  const { upload, number } = await startTrial()
  const megabytes = (count: number) => Buffer.alloc(count * 1024 * 1024)
  const refused: Array<[code: number, file: Parameters<Trial['upload']>[1]]> = [
    [100, { type: 'image/gif' }],
    [100, { type: 'application/octet-stream' }],
    [100, { type: 'image/png', bytes: '' }],
    [131053, { type: 'image/png', bytes: Buffer.concat([megabytes(5), Buffer.from('1')]) }],
    [131053, { type: 'image/webp', bytes: megabytes(1) }],
    [131053, { type: 'audio/ogg', bytes: megabytes(17) }],
  ]
  for (const [code, file] of refused)
    expect.soft(await upload(number, file), file.type).toMatchObject({ status: 400, body: { error: { code } } })
  expect(await upload(number, { type: 'image/png', bytes: megabytes(5) })).toMatchObject({ status: 200 })
})

test('refuses what is no form, or lacks a part', async () => {
  const { graph, url, number } = await startTrial()
  const path = `/v23.0/${number.phone_number_id}/media`
  expect(await graph(number, 'POST', path, { file: 'x' })).toMatchObject({
    status: 400,
    body: { error: { code: 100 } },
  })
  for (const part of ['messaging_product', 'file']) {
    const form = new FormData()
    form.set('messaging_product', 'whatsapp')
    form.set('file', new Blob(['x'], { type: 'image/png' }))
    form.delete(part)
    const headers = { authorization: `Bearer ${number.access_token}` }
    const response = await fetch(url + path, { method: 'POST', body: form, headers })
    expect(await response.json()).toMatchObject({
      error: { code: 100, message: `(#100) The parameter ${part} is required.` },
    })
  }
})

test('leaves nothing of an upload that broke off, and of one that was refused', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'simulator-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const { upload, url, number } = await startTrial({ dataFile: join(folder, 'simulator.json') })
  await upload(number, { type: 'image/gif' })
  const files = () => readdir(join(folder, 'simulator-media'))
  expect(await files()).toEqual([])

  const half = request(`${url}/v23.0/${number.phone_number_id}/media`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${number.access_token}`,
      'content-type': 'multipart/form-data; boundary=b',
      'content-length': 1_000_000,
    },
  })
  half.on('error', () => undefined)
  half.write('--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\ncontent-type: image/png\r\n\r\nhalf')
  await until(async () => expect(await files()).toHaveLength(1))
  half.destroy()
  await until(async () => expect(await files()).toEqual([]))
})

test('keeps files over a restart', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'simulator-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const before = await startTrial({ dataFile: join(folder, 'simulator.json') })
  const id = await uploaded(before)
  await before.stop()
  const { graph } = await startTrial({ dataFile: join(folder, 'simulator.json') })
  const { body } = await graph(before.number, 'GET', `/v23.0/${id}`)
  expect(await download(body['url'], before.number.access_token)).toMatchObject({ status: 200, text: 'picture' })
})

test('gives the file of a person to every number, of whatever type', async () => {
  const { control, graph, number } = await startTrial()
  const file = { mime_type: 'application/x-odd', data: Buffer.from('odd').toString('base64') }
  const { body } = await control('POST', 'media', file)
  const read = await graph(number, 'GET', `/v23.0/${String(body['id'])}`)
  expect(read.body).toMatchObject({ mime_type: 'application/x-odd', file_size: '3', sha256: body['sha256'] })
  expect(await download(read.body['url'], number.access_token)).toMatchObject({ text: 'odd' })
  expect(await control('POST', 'media', { ...file, data: 'no base64!' })).toMatchObject({ status: 400 })
})

test('sends by id what was uploaded for this number, and nothing else', async () => {
  const trial = await startTrial({ settings: { enforce_window: false } })
  const { send, addNumber, number } = trial
  const id = await uploaded(trial)
  const image = { type: 'image', image: { id } }
  const header = { type: 'image', image: { id } }
  const action = { buttons: [{ type: 'reply', reply: { id: 'a', title: 'A' } }] }
  const buttons = { type: 'interactive', interactive: { type: 'button', header, body: { text: 'b' }, action } }
  for (const message of [image, buttons]) {
    expect(await send(number, message)).toMatchObject({ status: 200 })
    expect(await send(await addNumber(), message)).toMatchObject({ status: 400, body: { error: { code: 100 } } })
  }
  const unknown = await send(number, { type: 'document', document: { id: '1037' } })
  expect(unknown.body.error?.message).toBe(
    "(#100) Param document['id'] is not a valid whatsapp business account media attachment ID",
  )
})

test('accepts a file of the wrong kind and fails it afterwards', async () => {
  const trial = await startTrial({ settings: { enforce_window: false } })
  const id = await uploaded(trial)
  expect(await trial.send(trial.number, { type: 'video', video: { id } })).toMatchObject({ status: 200 })
  await trial.settled()
  expect(trial.receiver.statuses()).toMatchObject([{ status: 'failed', errors: [{ code: 131053 }] }])
})

test('meets the faults that were laid for uploads, however large the file', async () => {
  const { upload, control, number } = await startTrial()
  const file = { type: 'application/pdf', bytes: Buffer.alloc(20_000_000) }
  const lay = (fault: object) => control('POST', 'faults', { match: { path: '/media' }, fault })
  await lay({ kind: 'error', code: 131016 })
  expect(await upload(number, file)).toMatchObject({ status: 500, body: { error: { code: 131016 } } })
  await lay({ kind: 'reset' })
  await expect(upload(number, file)).rejects.toThrow()
  await lay({ kind: 'timeout_after_accept', ms: 10 })
  await expect(upload(number, file)).rejects.toThrow()
  expect(await upload(number, file)).toMatchObject({ status: 200 })
})
