import { createContext, Script } from 'node:vm'
import { until } from '@app/test/until.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { pageFile } from './render-page.ts'

/** What the server answers, in turn; the last one again and again. */
type Answers = Array<{ status: number; body: object }>

const refused = (code: string, message = 'no') => ({ error: { code, message } })
const busy = { status: 429, body: refused('rate_limit_exceeded', 'Too many requests.') }
const begun = { status: 200, body: { data: { state: 's' } } }
const number = { phone_number_id: '106540352242922', phone_number: '+1 555 078 3881', name: 'Bakery', registered: true }
const done = { status: 200, body: { data: { number, success_url: null } } }

/** What the dialog does: it tells the page that opened it, and ends with a code. */
type Dialog = (tell: (event: string, data: object) => void, end: (code: string) => void) => void

const endAtOnce: Dialog = (tell, end) => {
  tell('FINISH', { waba_id: 1 })
  end('AQ')
}

const storageOf = (kept: Map<string, string>) => ({
  getItem: (name: string) => kept.get(name) ?? null,
  setItem: (name: string, text: string) => kept.set(name, text),
  removeItem: (name: string) => kept.delete(name),
})

/** The page's script in a document that knows as much as it needs; its waits are over at once. */
function openPage(
  answers: { begin: Answers; complete: Answers; isDead?: true; isSlow?: true },
  dialog: Dialog = endAtOnce,
  hasSdk = true,
  kept = new Map<string, string>(),
) {
  const elements = new Map<string, Record<string, unknown>>()
  const element = (id: string) => {
    const known = elements.get(id) ?? {
      id,
      hidden: true,
      textContent: '',
      dataset: {},
      addEventListener,
      setAttribute() {},
      focus() {},
      scrollIntoView() {},
    }
    elements.set(id, known)
    return known
  }
  const listeners = new Map<string, (event: object) => void>()
  const clicks: Array<() => void> = []
  function addEventListener(_type: string, listener: () => void) {
    clicks.push(listener)
  }
  const dataset = { origins: 'https://dialog.example', organization: 'Acme', extras: '{}', link: 'csl_1' }
  Object.assign(element('page'), { dataset, children: ['ask', 'done', 'failed'].map(element) })
  const asked: string[] = []
  const bodies: unknown[] = []
  let now = 0
  const context = {
    tell: (event: string, data: object) => {
      const text = JSON.stringify({ type: 'WA_EMBEDDED_SIGNUP', event, data })
      listeners.get('message')?.({ origin: 'https://dialog.example', data: text })
    },
    document: {
      getElementById: element,
      querySelector: () => element('footer'),
      createElement: () => ({}),
      head: { append: () => hasSdk && setImmediate(() => (context as { fbAsyncInit?: () => void }).fbAsyncInit?.()) },
    },
    location: { search: '', reload: () => asked.push('reload'), assign: (url: string) => asked.push(url) },
    performance: { now: () => now },
    sessionStorage: storageOf(kept),
    AbortSignal,
    setTimeout: (then: () => void, ms: number) => {
      now += ms
      setImmediate(then)
    },
    fetch: (path: string, { signal, body: asking }: { signal?: AbortSignal; body: string }) => {
      asked.push(path)
      if (path === 'setup/complete') bodies.push(JSON.parse(asking))
      if (answers.isDead) return signal?.aborted ? Promise.reject(signal.reason) : new Promise(() => {})
      if (answers.isSlow && path === 'setup/complete') return new Promise(() => {})
      const left = answers[path === 'setup/begin' ? 'begin' : 'complete']
      const { status, body } = (left.length > 1 ? left.shift() : left[0]) ?? busy
      return Promise.resolve({ status, json: () => Promise.resolve(body) })
    },
    addEventListener: (type: string, listener: (event: object) => void) => listeners.set(type, listener),
    FB: {
      init() {},
      login(told: (response: object) => void) {
        dialog(context.tell, (code) => told({ authResponse: { code } }))
      },
    },
  }
  Object.assign(context, { window: context })
  new Script(pageFile('page.js').toString()).runInContext(createContext(context))
  const titleOf = (id: string) => element(`${id}-title`)['textContent']
  return {
    asked,
    bodies,
    titleOf,
    textOf: (id: string) => element(id)['textContent'],
    tell: (event: string, data: object) => context.tell(event, data),
    isReady: () => element('connect')['disabled'] === false,
    connect: () => clicks[0]?.(),
    shown: () => ['done', 'failed'].filter((id) => element(id)['hidden'] === false),
  }
}

test('a visitor who is told to wait is not told that it failed: the page asks again', async () => {
  const page = openPage({ begin: [busy, begun], complete: [busy, busy, done] })
  await until(() => expect(page.isReady()).toBe(true))
  page.connect()
  await until(() => expect(page.shown()).toEqual(['done']))
  expect(page.titleOf('done')).toBe('Your number is connected')
  expect(page.textOf('done-number')).toBe('+1 555 078 3881, \u2068Bakery\u2069')
  expect(page.asked).toEqual([...Array(2).fill('setup/begin'), ...Array(3).fill('setup/complete')])
})

test('what does not pass says so in the end, and what is refused does at once', async () => {
  const away = openPage({ begin: [busy], complete: [busy] })
  await until(() => expect(away.shown()).toEqual(['failed']))
  expect(away.titleOf('failed')).toBe('Not available at the moment')
  const long = openPage({ begin: [begun], complete: [busy] })
  await until(() => expect(long.isReady()).toBe(true))
  long.connect()
  await until(() => expect(long.shown()).toEqual(['failed']))
  expect(long.titleOf('failed')).toBe('This takes longer than usual')
  const no = openPage({ begin: [begun], complete: [{ status: 422, body: refused('upstream_error') }] })
  await until(() => expect(no.isReady()).toBe(true))
  no.connect()
  await until(() => expect(no.shown()).toEqual(['failed']))
  expect(no.asked).toEqual(['setup/begin', 'setup/complete'])
})

test('on a line that is dead, and not closed, no answer is waited for without end', async () => {
  vi.spyOn(AbortSignal, 'timeout').mockReturnValue(AbortSignal.abort())
  onTestFinished(() => void vi.restoreAllMocks())
  const page = openPage({ begin: [begun], complete: [done], isDead: true })
  await until(() => expect(page.shown()).toEqual(['failed']))
  expect(page.titleOf('failed')).toBe('Not available at the moment')
})

test('a script of the platform that a content blocker emptied, or that never comes, is not waited for without end', async () => {
  const page = openPage({ begin: [begun], complete: [done] }, endAtOnce, false)
  await until(() => expect(page.shown()).toEqual(['failed']))
  expect(page.titleOf('failed')).toBe('The platform’s window is not available')
})

test('a dialog that told of a fault, and then ends well, is waited for, whichever of code and ids comes first', async () => {
  const page = openPage({ begin: [begun], complete: [done] }, (tell, end) => {
    tell('CANCEL', { error_message: 'The number is in use elsewhere.' })
    end('AQ')
    setImmediate(() => tell('FINISH', { waba_id: 1 }))
  })
  await until(() => expect(page.isReady()).toBe(true))
  page.connect()
  await until(() => expect(page.shown()).toEqual(['done']))
})

const words = 'This authorization code has expired'
test.each([
  ['phone_number_taken', 'as the API says it', 'It is already connected to another organization or another customer.'],
  ['upstream_error', 'The upstream platform refused the request.', 'The messaging platform refused it.'],
  ['upstream_error', 'The upstream platform refused the request: code 100', 'The messaging platform refused it.'],
  [
    'upstream_error',
    `The upstream platform refused the request: ${words}`,
    `The messaging platform refused it: ${words}.`,
  ],
  ['upstream_error', '', 'The messaging platform did not name a number.'],
  ['invalid_field_value', 'business_account_id: must be 6 to 20 digits.', 'Something went wrong on our side.'],
])('%s, %s: what is refused is told in words for people, with what to do next', async (code, message, why) => {
  const page = openPage({ begin: [begun], complete: [{ status: 422, body: refused(code, message) }] })
  await until(() => expect(page.isReady()).toBe(true))
  page.connect()
  await until(() => expect(page.shown()).toEqual(['failed']))
  expect(page.titleOf('failed')).toBe('The number could not be connected')
  expect(page.textOf('failed-text')).toBe(`${why} You can try again. If that does not help, please ask Acme.`)
})

test('a dialog from before the page was loaded anew ends, and the page says that it must be walked through again', async () => {
  const page = openPage({ begin: [begun], complete: [done] })
  await until(() => expect(page.isReady()).toBe(true))
  page.tell('CANCEL', { current_step: 'PHONE_NUMBER_SETUP' })
  expect(page.textOf('status')).toBe('')
  page.tell('FINISH', { waba_id: 1 })
  expect(page.textOf('status')).toBe('This page was loaded anew meanwhile: please connect the number again.')
  expect(page.asked).toEqual(['setup/begin'])
})

test('a page that is loaded anew while the number is being connected goes on with it, and tells how that ended', async () => {
  const kept = new Map<string, string>()
  const first = openPage({ begin: [begun], complete: [busy], isSlow: true }, endAtOnce, true, kept)
  await until(() => expect(first.isReady()).toBe(true))
  first.connect()
  await until(() => expect(first.bodies).toHaveLength(1))
  const again = openPage({ begin: [begun], complete: [busy, done] }, endAtOnce, true, kept)
  expect(again.textOf('status')).toBe('One moment: your number is being connected …')
  await until(() => expect(again.shown()).toEqual(['done']))
  expect([again.asked, again.bodies[0]]).toEqual([Array(2).fill('setup/complete'), first.bodies[0]])
  expect(kept.size).toBe(0)
})

test('a page that was told to try again in a minute goes on then; after a refusal it begins anew', async () => {
  const kept = new Map<string, string>()
  const page = openPage({ begin: [begun], complete: [busy] }, endAtOnce, true, kept)
  await until(() => expect(page.isReady()).toBe(true))
  page.connect()
  await until(() => expect(page.titleOf('failed')).toBe('This takes longer than usual'))
  const no = { status: 422, body: refused('upstream_error') }
  const again = openPage({ begin: [begun], complete: [no] }, endAtOnce, true, kept)
  await until(() => expect(again.titleOf('failed')).toBe('The number could not be connected'))
  const last = openPage({ begin: [begun], complete: [done] }, endAtOnce, true, kept)
  await until(() => expect(last.isReady()).toBe(true))
  expect([...again.asked, ...last.asked]).toEqual(['setup/complete', 'setup/begin'])
})

test('in a browser that keeps nothing for us the number is connected all the same', async () => {
  const refuse = () => {
    throw new Error('The operation is insecure.')
  }
  const nothing = Object.assign(new Map<string, string>(), { get: refuse, set: refuse, delete: refuse })
  const page = openPage({ begin: [begun], complete: [done] }, endAtOnce, true, nothing)
  await until(() => expect(page.isReady()).toBe(true))
  page.connect()
  await until(() => expect(page.shown()).toEqual(['done']))
})
