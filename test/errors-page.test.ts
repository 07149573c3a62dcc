import { join } from 'node:path'
import { failures, type FailureName } from '@app/shared/api/problem.ts'
import { AccountState } from '@app/shared/contracts/platform.ts'
import { expect, test } from 'vitest'
import { reasons } from '../services/messaging/sends/message-failed.ts'
import { codeOfRefusal } from '../services/messaging/sends/outcome.ts'
import { behaviours } from '../services/messaging/upstream/errors.ts'
import { advice, messageAdvice } from './docs/advice.ts'

const file = join(import.meta.dirname, '../docs/errors.md')

const rowsOf = (rows: string[][]) => rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n')

const requestRows = () => {
  const names = Object.keys(failures) as FailureName[]
  return names
    .toSorted((a, b) => failures[a].status - failures[b].status)
    .map((name) => {
      const { status, type, code, message } = failures[name]
      return [String(status), `\`${code}\``, `\`${type}\``, message, advice[name]]
    })
}

/** The codes of `Message.error`: the platform's refusals in our words, and our own reasons. */
function messageCodes() {
  const byCode = Map.groupBy(behaviours, ([, { code }]) => code)
  const codes = new Set([...byCode.keys(), ...Object.keys(reasons)])
  return [...codes].toSorted().map((code) => ({ code, upstream: byCode.get(code) ?? [] }))
}

const messageRows = () =>
  messageCodes().map(({ code, upstream }) => {
    const numbers = upstream.map(([number, { action }]) => (action === 'fail' ? `${number}` : `${number}\\*`))
    return [`\`${code}\``, messageAdvice[code] ?? '', numbers.join(', ')]
  })

const page = () => `# Errors

This page is generated from the tables that the service uses. \`api\` is that of the [quick start](quick-start.md).

## When a request fails

\`\`\`sh
api "/$NUMBER/messages?limit=0"
\`\`\`

\`\`\`json
{
  "error": {
    "type": "invalid_request_error",
    "code": "invalid_limit",
    "message": "limit must be a whole number from 1 to 100.",
    "param": "limit",
    "request_id": "req_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD"
  }
}
\`\`\`

Your program should use \`code\`, which is stable; \`message\` is for people and may change. If a field is wrong, \`param\` names it, such as
\`interactive.action.buttons[1].reply.title\`. The operator finds the request by its \`request_id\`.

Retry every 5xx, 408, 429 and \`idempotency_in_progress\`, after \`Retry-After\` if the answer has it, and always with the same
\`Idempotency-Key\` ([Send once](sending.md#send-once-idempotency-keys)). Any other 4xx stays the same until you change the request.

| status | code | type | message | what to do |
|---|---|---|---|---|
${rowsOf(requestRows())}

New codes may be added: treat one that you do not know by its status.

## Why a message failed

\`error.code\` of a message with the status \`failed\`. The numbers are the platform's own (\`provider_code\`, and \`errors[0].code\` in
\`message.status\`, which is -1 where the reason is ours). Codes with a * were retried first. Platform codes from 200 to 299 are
\`upstream_auth_failed\`, and all that are not in the table are \`upstream_error\`: retried first where the platform calls them transient.

| code | meaning | the platform's codes |
|---|---|---|
${rowsOf(messageRows())}
`

test('docs/errors.md is made of the tables', () => expect(page()).toMatchFileSnapshot(file))

test('every code that a message may fail with is explained', () =>
  expect(messageCodes().map(({ code }) => code)).toEqual(Object.keys(messageAdvice).toSorted()))

test('every reason of ours is one that a message can fail with', () => {
  const refusals = AccountState.shape.refusal.unwrap().options.map(codeOfRefusal)
  const codes = new Set(['delivery_unknown', 'expired', ...refusals])
  expect(Object.keys(reasons).toSorted()).toEqual([...codes].toSorted())
})
