import { randomBytes } from 'node:crypto'
import { png } from '@app/test/png.ts'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import type { TestGateway } from '../testing/gateway.ts'
import { formOf, gatewayWithUploads, phone } from '../testing/uploads.ts'

const it = gatewayWithUploads()
const { uploads, upload, begin, stored, unfinished } = it
let gateway: TestGateway
let key: string
beforeAll(() => void ({ gateway, key } = it))

describe('the form of an upload', () => {
  test('takes the type from the field when the part says none, and from the bytes when neither does', async () => {
    const bytes = Buffer.from('Hello, this is text.')
    expect((await upload({ bytes, type: 'application/octet-stream', said: 'text/plain' })).status).toBe(201)
    expect((await upload({ bytes: png(10), type: 'application/octet-stream' })).status).toBe(201)
    expect(uploads.map(({ mime_type }) => mime_type)).toEqual(['text/plain', 'image/png'])
  })

  test('takes the type of the part before that of the field', async () => {
    const bytes = Buffer.from('Hello, this is text.')
    expect((await upload({ bytes, type: 'text/plain', said: 'application/pdf' })).status).toBe(201)
    expect(uploads.map(({ mime_type }) => mime_type)).toEqual(['text/plain'])
    expect((await upload({ bytes, type: 'Application/Octet-Stream', said: 'application/pdf' })).status).toBe(422)
  })

  test('takes the type from the field, or from the bytes, when the part has no line for it', async () => {
    const pdf = Buffer.concat([Buffer.from('%PDF-1.7\n'), randomBytes(100)])
    expect((await upload({ bytes: pdf, type: null, said: 'application/pdf' })).status).toBe(201)
    expect((await upload({ bytes: png(10), type: null })).status).toBe(201)
    expect((await upload({ bytes: Buffer.from('Hello, this is text.'), type: null })).status).toBe(201)
    expect(uploads.map(({ mime_type }) => mime_type)).toEqual(['application/pdf', 'image/png', 'text/plain'])
    const refused = await upload({ bytes: pdf, type: null, said: 'image/png' })
    const message = 'The file is not image/png, as its Content-Type says: it is application/pdf.'
    expect([refused.status, refused.json()]).toMatchObject([422, { error: { param: 'file', message } }])
  })

  test.each([
    ['a.png', 'a.png'],
    [' Grüße.png ', 'Grüße.png'],
    ['../../etc/passwd', 'passwd'],
    ['a\u0001\tb\u0085.png', 'ab.png'],
    ['/', null],
    [`${'x'.repeat(300)}.png`, 'x'.repeat(255)],
    [`${'x'.repeat(254)}😀.png`, `${'x'.repeat(254)}\uFFFD`],
  ])('with the filename %j is named %j', async (filename, named) => {
    expect((await upload({ bytes: png(10), filename })).status).toBe(201)
    expect(uploads).toMatchObject([{ filename: named }])
  })

  test('without a filename is a file, too, also of another name with bytes of an unknown type', async () => {
    expect((await upload({ bytes: png(10), filename: null })).status).toBe(201)
    const { body, headers } = formOf({ bytes: png(10), type: 'application/octet-stream', filename: null })
    const other = Buffer.from(body.toString('latin1').replace('name="file"', 'name="upload"'), 'latin1')
    expect((await gateway.ask(`/v1/${phone}/media`, { key, body: other, headers })).status).toBe(201)
    expect(uploads).toMatchObject([{ filename: null }, { filename: null }])
  })

  test.each([
    ['JSON', { 'content-type': 'application/json' }, 415, 'unsupported_media_type'],
    ['a compressed form', { 'content-encoding': 'gzip' }, 415, 'unsupported_media_type'],
    ['a form without a boundary', { 'content-type': 'multipart/form-data' }, 415, 'unsupported_media_type'],
    [
      'a form that names something else',
      { 'content-type': 'multipart/form-data; charset=utf-8' },
      400,
      'invalid_field_value',
    ],
    ['a form with an empty boundary', { 'content-type': 'multipart/form-data; boundary=' }, 400, 'invalid_field_value'],
    ['another boundary', { 'content-type': 'multipart/form-data; boundary=other' }, 400, 'invalid_field_value'],
  ])('as %s is refused', async (_name, headers, status, code) => {
    const answer = await upload({ bytes: png(10) }, headers)
    expect([answer.status, answer.json().error?.code]).toEqual([status, code])
  })

  test('says that it is a form in any case of letters, and nothing else', async () => {
    const said = (type: string) => upload({ bytes: png(10) }, { 'content-type': `${type}; boundary=xxBOUNDARYxx` })
    expect((await said('Multipart/Form-Data')).status).toBe(201)
    expect((await said('x-multipart/form-data')).status).toBe(415)
  })

  test('is not looked for behind more fields than a form of ours has', async () => {
    const { body, headers } = formOf({ bytes: png(10) })
    const field = '--xxBOUNDARYxx\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n'
    const ask = (count: number) =>
      gateway.ask(`/v1/${phone}/media`, { key, body: Buffer.concat([Buffer.from(field.repeat(count)), body]), headers })
    expect((await ask(16)).status).toBe(201)
    const { status, json } = await ask(20)
    expect([status, json().error]).toMatchObject([400, { code: 'invalid_field_value', param: 'file' }])
  })

  test.each([0, 100, 70_000, 1_000_000])('whose form ends after %i bytes of its file is refused', async (size) => {
    const before = stored().length
    const { body, headers } = formOf({ bytes: png(size) })
    const cut = body.subarray(0, body.lastIndexOf('--xxBOUNDARYxx') - 2)
    const { status, json } = await gateway.ask(`/v1/${phone}/media`, { key, body: cut, headers })
    expect([status, json().error?.code]).toEqual([400, 'invalid_field_value'])
    await expect.poll(() => stored().length).toBe(before)
    expect(uploads).toEqual([])
  })

  test('whose form breaks off behind its file is refused', async () => {
    const keeping = vi.spyOn(gateway.app.store, 'put')
    const tail = '--xxBOUNDARYxx\r\nContent-Disposition: form-data; name="more"\r\n\r\nand so'
    const { socket, body, answer } = begin(key, { bytes: png(1_000), tail })
    socket.write(body.subarray(0, -1))
    await expect.poll(() => keeping.mock.settledResults.map(({ type }) => type)).toEqual(['fulfilled'])
    socket.write(body.subarray(-1))
    await expect.poll(answer).toContain('invalid_field_value')
    expect(uploads).toEqual([])
    socket.destroy()
    keeping.mockRestore()
  })

  test('takes the first file of its form, and throws away what follows', async () => {
    const head = '--xxBOUNDARYxx\r\nContent-Disposition: form-data; name="file"; filename="b.png"\r\n\r\n'
    const tail = `${head}${'x'.repeat(1_000_000)}\r\n--xxBOUNDARYxx--\r\n`
    expect((await upload({ bytes: png(10), tail })).status).toBe(201)
    expect(uploads).toMatchObject([{ filename: 'a.png' }])
  })
})

test('nothing unfinished is left', () => {
  expect(unfinished()).toEqual([])
})
