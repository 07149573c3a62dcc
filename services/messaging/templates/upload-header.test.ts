import { createServer, type ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { listen } from '@app/test/listen.ts'
import { png } from '@app/test/png.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { json, refuse } from '../testing/template-platform.ts'
import { order, type TestTemplates, testTemplates } from '../testing/templates.ts'
import { withSample } from './fetch-sample.ts'

let it: TestTemplates
let respond: (response: ServerResponse) => void
let url: string
const server = createServer((_request, response) => respond(response))

beforeAll(async () => {
  it = await testTemplates()
  url = `http://127.0.0.1:${await listen(server)}/files/the%20picture.png`
})
afterAll(async () => {
  server.close().closeAllConnections()
  await it.close()
})
beforeEach(async () => {
  it.platform.reset()
  await it.app.sql`delete from templates`
})

const serve = (type: string, body: Buffer | string, headers: object = {}) => {
  respond = (response) => void response.writeHead(200, { 'content-type': type, ...headers }).end(body)
}
const create = (format: string, example: object = { header_url: url }) =>
  it.create(
    order('pictured', {
      components: [
        { type: 'HEADER', format, example },
        { type: 'BODY', text: 'Look.' },
      ],
    }),
  )
const param = 'components[0].example.header_url'
const leftovers = () => it.app.sql`select file_key from unclaimed_files`
const mebibyte = 1024 * 1024

test('a sample is fetched, uploaded in two calls, and the template names its handle', async () => {
  const picture = png(3 * mebibyte)
  serve('image/png; charset=binary', picture)
  const { data } = await create('IMAGE', { header_url: url, more: 'kept' })
  const [session, upload, submission] = it.platform.seen
  expect(session?.path).toBe('/v23.0/1234567890/uploads')
  expect(Object.fromEntries(session?.query ?? [])).toEqual({
    file_name: 'the_20picture.png',
    file_length: String(picture.length),
    file_type: 'image/png',
  })
  expect(upload).toMatchObject({ path: `/v23.0/upload:${picture.length}`, authorization: 'OAuth token' })
  expect(upload?.query.get('sig')).toBe('a+b')
  expect(upload?.body.equals(picture)).toBe(true)
  const handle = { more: 'kept', header_handle: [`4::${picture.length}`] }
  expect(JSON.parse(String(submission?.body))).toMatchObject({ components: [{ example: handle }, {}] })
  expect(data.components[0]).toEqual({ type: 'HEADER', format: 'IMAGE', example: handle })
  expect(await leftovers()).toEqual([])
})

test('a sample that is not read after all is closed, and nothing is left of it', async () => {
  serve('image/png', png(100))
  const link = {
    organizationId: it.organizationId,
    url,
    kind: 'image' as const,
    param,
    deadline: performance.now() + 10_000,
  }
  const opened: Readable[] = []
  const using = withSample(it.app, link, ({ body }) => {
    opened.push(body)
    throw new Error('the platform is away')
  })
  await expect(using).rejects.toThrow('the platform is away')
  expect(opened.map(({ destroyed }) => destroyed)).toEqual([true])
  expect(await leftovers()).toEqual([])
})

test.each([
  ['of another type', 'IMAGE', () => serve('image/webp', 'x')],
  ['of another kind', 'VIDEO', () => serve('image/png', png(100))],
  ['that is not what it says', 'IMAGE', () => serve('image/png', 'x')],
  ['that is empty', 'IMAGE', () => serve('image/png', '')],
  ['that is too large', 'IMAGE', () => serve('image/png', png(5 * mebibyte + 1))],
  ['that goes on and on', 'IMAGE', () => serve('image/png', png(6 * mebibyte), { 'transfer-encoding': 'chunked' })],
  ['that is elsewhere', 'IMAGE', () => (respond = (response) => void response.writeHead(302, { location: url }).end())],
  ['that is not there', 'IMAGE', () => (respond = (response) => void response.writeHead(404).end())],
  ['that breaks off', 'IMAGE', () => (respond = (response) => void response.destroy())],
])('a sample %s is refused, and nothing is left of it', async (_what, format, given) => {
  given()
  await expect(create(format)).rejects.toMatchObject({ failure: 'media_upload_failed', status: 422, param })
  expect(it.platform.seen).toEqual([])
  expect(await it.app.sql`select 1 from templates`).toHaveLength(0)
  expect(await leftovers()).toEqual([])
})

test('an address that leads inside, or is none, is refused before anything is submitted', async () => {
  for (const header_url of ['http://10.0.0.1/a.png', 'https://169.254.169.254/'])
    await expect(create('IMAGE', { header_url })).rejects.toMatchObject({ failure: 'media_upload_failed', param })
  // As the link of a send.
  for (const header_url of ['ftp://x.example/a', 'nowhere', `https://${'a'.repeat(301)}/`])
    await expect(create('IMAGE', { header_url })).rejects.toMatchObject({ failure: 'invalid_field_value', param })
  expect(it.platform.seen).toEqual([])
})

test('a sample that the platform does not take is the address’s fault; a platform that is away or busy is a 502', async () => {
  serve('image/png', png(100))
  it.platform.once(refuse(100, undefined, { sentence: 'Bad picture.' }))
  await expect(create('IMAGE')).rejects.toMatchObject({
    failure: 'media_upload_failed',
    message: expect.stringContaining('Bad picture.'),
  })
  it.platform.once((_request, response) => void response.destroy())
  await expect(create('IMAGE')).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  it.platform.once((request, response) => it.platform.answer(request, response))
  it.platform.once((_request, response) => void response.destroy())
  await expect(create('IMAGE')).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  it.platform.once(refuse(80007))
  await expect(create('IMAGE')).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  const unproven = { error: { code: 100, message: 'Invalid appsecret_proof provided in the API argument' } }
  it.platform.once((_request, response) => json(response, unproven, 400))
  await expect(create('IMAGE')).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  it.platform.once(refuse(190, undefined, { status: 401 }))
  await expect(create('IMAGE')).rejects.toMatchObject({ failure: 'upstream_refused' })
  // Nothing was submitted, so nothing can have come of it.
  expect(await it.app.sql`select 1 from templates`).toHaveLength(0)
  expect(await leftovers()).toEqual([])
})
