import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { App } from '../app.ts'
import { BadField, parseBody } from '../control/parse.ts'
import { displayPhoneNumber, type PhoneNumber, randomId } from '../numbers/numbers.ts'

const Choice = z.strictObject({
  /** `number`: the one of `phone_number_id`, else a new one that is still to be registered. */
  choice: z.enum(['number', 'registered', 'business_app', 'account_only']),
  phone_number_id: z
    .string()
    .regex(/^\d{6,20}$/)
    .optional(),
})

const files = {
  '/signup/sdk.js': ['sdk.js', 'text/javascript'],
  '/signup/dialog': ['dialog.html', 'text/html'],
  '/signup/dialog.js': ['dialog.js', 'text/javascript'],
  '/signup/dialog.css': ['dialog.css', 'text/css'],
} as const

/** Nobody adds to the window, frames it, or learns the state that its address has. */
const headers = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-cache',
}

const newestNumbers = 8

/**
 * The platform's embedded signup: a script with `FB.login`, as its SDK has, and the dialog that it opens. `POST
 * /signup/finish` is what the dialog's last button does, for tests that have no browser.
 */
export function serveDialog(app: App, http: FastifyInstance) {
  http.removeAllContentTypeParsers()
  http.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes))
  http.setErrorHandler((err, _request, reply) => {
    if (!(err instanceof BadField)) throw err
    return reply.code(400).send({ error: { field: err.field, message: err.message } })
  })
  for (const [path, [name, type]] of Object.entries(files)) {
    const bytes = readFileSync(join(import.meta.dirname, 'pages', name))
    http.get(path, (_request, reply) => reply.type(`${type}; charset=utf-8`).headers(headers).send(bytes))
  }
  http.get('/signup/numbers', () => ({ data: shown(app).map(toChoice) }))
  http.post('/signup/finish', async (request) => {
    const told = finish(app, parseBody(Choice, request.body))
    await app.dataFile.save()
    return told
  })
}

const shown = ({ numbers }: App) =>
  numbers
    .all()
    .filter(({ status }) => status !== 'DELETED')
    .slice(-newestNumbers)
    .toReversed()

const toChoice = (number: PhoneNumber) => ({
  phone_number_id: number.phoneNumberId,
  name: number.verifiedName,
  display_phone_number: displayPhoneNumber(number),
  status: number.status,
})

/** What the real dialog tells the page that opened it: an event with ids, and a code. */
function finish(app: App, { choice, phone_number_id: wanted }: z.output<typeof Choice>) {
  const number = chosen(app, choice, wanted)
  const ids = { waba_id: number.businessAccountId, business_id: randomId() }
  const code = app.codes.issue(number.accessToken)
  if (choice === 'account_only') return { event: 'FINISH_ONLY_WABA', code, data: ids }
  if (choice === 'business_app') return { event: 'FINISH_WHATSAPP_BUSINESS_APP_ONBOARDING', code, data: ids }
  return { event: 'FINISH', code, data: { phone_number_id: number.phoneNumberId, ...ids } }
}

function chosen({ numbers }: App, choice: z.output<typeof Choice>['choice'], wanted: string | undefined) {
  if (wanted !== undefined) {
    const known = numbers.find(wanted)
    if (!known) throw new BadField('phone_number_id', 'There is no such number.')
    return known
  }
  // A business account needs somebody whose token it is: a number that is not shown until its status is set.
  const statuses = { number: 'PENDING', registered: 'CONNECTED', business_app: 'CONNECTED', account_only: 'DELETED' }
  const { phoneNumberId } = numbers.put({ status: statuses[choice] as PhoneNumber['status'] })
  return numbers.change(phoneNumberId, { isInBusinessApp: choice === 'business_app' })
}
