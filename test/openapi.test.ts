import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { contractModules } from '@app/gateway/contracts.ts'
import { openapi } from '@app/gateway/openapi/openapi.ts'
import { failures } from '@app/shared/api/problem.ts'
import spectralCore, { type RulesetDefinition } from '@stoplight/spectral-core'
import spectralRulesets from '@stoplight/spectral-rulesets'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { describe, expect, inject, test } from 'vitest'
import { pages, readPage } from './docs/pages.ts'

const file = join(import.meta.dirname, '../docs/openapi.json')

interface Content {
  schema: object
  example?: unknown
  examples?: Record<string, { value: unknown }>
}
interface Response {
  $ref?: string
  content?: Record<string, Content>
}
interface Schema {
  enum?: string[]
  'x-extensible-enum'?: string[]
}

interface Operation {
  operationId: string
  security?: object[]
  parameters?: Array<{ name: string }>
  requestBody?: { content: Record<string, Content> }
  responses: Record<string, Response>
}
interface Document {
  webhooks: Record<string, { post: Required<Pick<Operation, 'operationId' | 'requestBody' | 'parameters'>> }>
  paths: Record<string, Record<string, Operation>>
  components: { responses: Record<string, Response>; schemas: Record<string, Schema> }
}

const made = openapi(Object.values(contractModules), 'http://127.0.0.1:8080') as Document
const operations = Object.values(made.paths).flatMap((path) => Object.values(path))

test('docs/openapi.json is made of the contracts', async () => {
  await expect(`${JSON.stringify(made, null, 2)}\n`).toMatchFileSnapshot(file)
})

describe('its lint is clean', () => {
  test('redocly', async () => {
    const copy = join(inject('runFolder'), 'openapi.json')
    writeFileSync(copy, JSON.stringify(made))
    const require = createRequire(import.meta.url)
    const cli = join(require.resolve('@redocly/cli/package.json'), '../bin/cli.js')
    const config = join(import.meta.dirname, 'redocly.yaml')
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      [cli, 'lint', copy, '--config', config, '--format', 'json'],
      { env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' } },
    ).catch((err: unknown) => err as { stdout: string; stderr: string })
    expect(stderr).not.toContain('failed')
    expect((JSON.parse(stdout) as { problems: unknown[] }).problems).toEqual([])
  })

  test('spectral', async () => {
    const spectral = new spectralCore.Spectral()
    spectral.setRuleset({ extends: [spectralRulesets.oas as RulesetDefinition] })
    expect(await spectral.run({ ...structuredClone(made) })).toEqual([])
  }, 60_000)
})

/** The schemas, as a validator that knows nothing of where they came from reads them. */
const ajv = formats.default(new Ajv2020({ strict: false, allErrors: true })).addSchema(made, 'api')

function faultsOf({ schema }: Content, value: unknown) {
  const relinked = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"api#/')) as object
  const validate = ajv.compile(relinked)
  return validate(value) ? [] : validate.errors
}

const resolved = (response: Response) =>
  response.$ref ? (made.components.responses[response.$ref.split('/').at(-1) ?? ''] as Response) : response

test.each(operations)('$operationId: its examples fit their schemas', ({ requestBody, responses }) => {
  const contents = [requestBody, ...Object.values(responses).map(resolved)].flatMap((part) =>
    Object.values(part?.content ?? {}),
  )
  for (const content of contents) {
    const examples = Object.values(content.examples ?? {}).map(({ value }) => value)
    if (content.example !== undefined) examples.push(content.example)
    for (const example of examples) expect(faultsOf(content, example)).toEqual([])
  }
})

test.each(operations.filter(({ security }) => security === undefined))(
  '$operationId lists what it may fail with',
  ({ responses }) => {
    expect(Object.keys(responses)).toEqual(
      expect.arrayContaining(['400', '401', '404', '414', '429', '431', '500', '503']),
    )
    for (const [status, response] of Object.entries(responses)) {
      const { examples } = resolved(response).content?.['application/json'] ?? {}
      for (const name of Object.keys(examples ?? {}))
        expect(String(failures[name as keyof typeof failures].status)).toBe(status)
    }
  },
)

test('every event that can be selected is described as a webhook', () => {
  const described = new Set(Object.keys(made.webhooks))
  expect(new Set(made.components.schemas['EventType']?.enum).difference(described)).toEqual(new Set())
})

test('a webhook has the headers that its page says', () => {
  const said = new Set(readPage('docs/webhooks.md').text.match(/X-Svc-[\w-]+/g))
  for (const { post } of Object.values(made.webhooks))
    expect(new Set(post.parameters.map(({ name }) => name))).toEqual(said)
})

/** They are held against what a subscriber gets (`journeys/docs.test.ts`). */
const shownWebhooks = pages()
  .flatMap(({ snippets }) => snippets)
  .flatMap(({ webhook, code }) => (webhook === null ? [] : [{ webhook, code }]))

test.each(shownWebhooks)('$webhook: what the pages show of it fits its schema', ({ webhook, code }) => {
  const contents = Object.values(made.webhooks[webhook]?.post.requestBody.content ?? {})
  expect(contents).toHaveLength(1)
  for (const content of contents) expect(faultsOf(content, JSON.parse(code))).toEqual([])
})

test('every code of the failures table is listed', () => {
  const codes = Object.values(failures).map(({ code }) => code)
  expect(new Set(made.components.schemas['ErrorCode']?.['x-extensible-enum'])).toEqual(new Set(codes))
})
