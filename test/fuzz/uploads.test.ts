import fc from 'fast-check'
import { request } from 'undici'
import { beforeAll, expect, inject, test } from 'vitest'
import type { Json } from '../journeys/client.ts'
import { checkAnswer } from '../journeys/openapi-check.ts'
import { newTenant, type Tenant } from '../journeys/tenant.ts'
import { amount, seed } from './seed.ts'

const stack = inject('stack')
const count = amount(150, 2_000)
let tenant: Tenant
let phone: string
beforeAll(async () => {
  tenant = await newTenant('--tier', 'unlimited')
  phone = await tenant.connect()
})

const boundary = 'fuzz-7MA4YWxk'

/** One part of a form, right or wrong. */
const part = fc
  .record({
    name: fc.constantFrom('file', 'file', 'type', 'messaging_product', '', '__proto__', 'é'),
    filename: fc.constantFrom('words.txt', '../../etc/passwd', 'a"b.txt', 'x'.repeat(300), '\u202Etxt.exe', '', null),
    type: fc.constantFrom('text/plain', 'image/png', 'image/svg+xml', 'text/html', 'nonsense', '*/*', null),
    bytes: fc.oneof(
      fc.constantFrom(Buffer.from('some words'), Buffer.alloc(0), Buffer.alloc(70_000, 65), Buffer.from('%PDF-1.7\nx')),
      fc.constant(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')),
      fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    ),
  })
  .map(({ name, filename, type, bytes }) => {
    const disposition = `form-data; name="${name}"${filename === null ? '' : `; filename="${filename}"`}`
    const head = `Content-Disposition: ${disposition}\r\n${type === null ? '' : `Content-Type: ${type}\r\n`}`
    return Buffer.concat([Buffer.from(`--${boundary}\r\n${head}\r\n`), bytes, Buffer.from('\r\n')])
  })

/** A form of some parts; whole, cut off, or with bytes that belong to none. */
const form = fc
  .tuple(
    fc.array(part, { maxLength: 4 }),
    fc.constantFrom('whole', 'whole', 'whole', 'cut', 'no end', 'noise'),
    fc.nat({ max: 1_000 }),
  )
  .map(([parts, shape, n]) => {
    const all = Buffer.concat(parts)
    const end = Buffer.from(`--${boundary}--\r\n`)
    if (shape === 'cut') return all.subarray(0, Math.floor((all.length * n) / 1_000))
    if (shape === 'no end') return all
    return shape === 'noise'
      ? Buffer.concat([Buffer.from('noise'), all, end, Buffer.from('noise')])
      : Buffer.concat([all, end])
  })

const contentType = fc.oneof(
  { weight: 12, arbitrary: fc.constant(`multipart/form-data; boundary=${boundary}`) },
  fc.constantFrom(
    'multipart/form-data', 'multipart/form-data; boundary=', 'multipart/form-data; boundary=other', 'multipart/mixed; boundary=x',
    'application/json', '', `multipart/form-data; boundary=${'x'.repeat(200)}`,
  ),
) // prettier-ignore

const upload = fc.record({
  body: form,
  type: contentType,
  key: fc.option(fc.constantFrom('', 'a key', 'x'.repeat(300))),
})

test(`${count} uploads, whole and broken: no 5xx, every answer fits the OpenAPI, nothing dangerous is kept`, { timeout: 600_000 }, async () => {
  const statuses: Record<number, number> = {}
  const property = fc.asyncProperty(upload, async ({ body, type, key }) => {
    const answer = await request(`${stack.base_url}/${phone}/media`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tenant.key}`, 'content-type': type, ...(key !== null && { 'idempotency-key': key }) },
      body,
    })
    const json = (await answer.body.json()) as Json
    statuses[answer.statusCode] = (statuses[answer.statusCode] ?? 0) + 1
    expect(answer.statusCode, `${body.length} bytes: ${body.toString('latin1').slice(0, 300)} ${JSON.stringify(json)}`).toBeLessThan(500)
    checkAnswer('POST', `/${phone}/media`, answer.statusCode, json)
    expect(json.request_id ?? json.error.request_id).toMatch(/^req_/)
    if (answer.statusCode === 201) expect(['text/plain', 'application/pdf']).toContain(json.data.mime_type)
  })
  await fc.assert(property, { seed, numRuns: count })
  console.log(`uploads by status: ${JSON.stringify(statuses)}`)
  expect(statuses[201]).toBeGreaterThan(0)
}) // prettier-ignore
