import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { between, oneByWeight, oneOf, type Random, type Weighted } from '@app/test/faults/random.ts'
import type { TestMessaging } from './app.ts'
import { refuse as refuseSend } from './app.ts'
import { json, type PlatformTemplate, refuse, type Seen, startTemplatePlatform, unheard } from './template-platform.ts'

/** What a callback of the platform tells of a template. */
export interface Telling {
  account: string
  field: string
  value: object
  /** Epoch seconds. */
  time: number
}

/** A template that there was at some time, or is. */
interface Made {
  text: string
  /** Something else than its creation has changed what it says. */
  isOther: boolean
  /** When it was asked for, and when it was there, `performance.now()`. */
  askedAt: number
  madeAt: number
}

/** What it does with a request about templates. */
const moods: Weighted<'well' | 'late' | 'late answer' | 'lost' | 'broken off' | 'busy' | 'refused' | 'another page'>[] =
  [
    [12, 'well'],
    [2, 'late'],
    [2, 'late answer'],
    [2, 'lost'],
    [1, 'broken off'],
    [1, 'busy'],
    [1, 'refused'],
    [1, 'another page'],
  ]

/** What it does with a send; a code is what it refuses it with, whatever the template is. */
const sendMoods: Weighted<'well' | 'late' | 131000 | 132001 | 132015 | 132016>[] = [
  [12, 'well'],
  [3, 'late'],
  [1, 131000],
  [1, 132001],
  [1, 132015],
  [1, 132016],
]

const lateMs = 400

/** The platform's side of templates and of sends of them, with moods until it is calm. */
export async function startMoodyTemplates({ respondWith }: TestMessaging, random: Random) {
  const platform = await startTemplatePlatform()
  const made = new Map<string, Made>()
  /** What it answered the calls of each message: null where it took it. */
  const sends = new Map<string, (number | null)[]>()
  const edits = new Set<string>()
  let isCalm = false

  async function respond(request: Seen, response: ServerResponse) {
    const mood = isCalm ? 'well' : oneByWeight(random, moods)
    const askedAt = performance.now()
    if (mood === 'broken off') return response.destroy()
    if (mood === 'busy') return refuse(2, undefined, { status: 500 })(request, response)
    if (mood === 'refused') return refuse(100, 2388072)(request, response)
    if (mood === 'late') await sleep(between(random, 0, lateMs))
    if (mood === 'well' || mood === 'late') return act(request, response, askedAt)
    if (mood === 'late answer') return act(request, delayed(response, between(random, 0, lateMs)), askedAt)
    act(request, unheard, askedAt)
    if (mood === 'lost') return response.destroy()
    response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Hello</p>')
  }

  function act(request: Seen, response: ServerResponse, askedAt = performance.now()): void {
    if (request.method === 'GET') return platform.answer(request, response)
    const { name, language, components } = JSON.parse(request.body.toString()) as PlatformTemplate
    const account = request.path.split('/').at(-2)
    const isCreation = request.path.endsWith('/message_templates')
    const found = platform.templates.find((one) =>
      isCreation
        ? one.account === account && one.name === name && one.language === language
        : request.path.endsWith(`/${one.id}`),
    )
    const isHeld = found?.status === 'PENDING_DELETION'
    if (isCreation && isHeld) return void refuse(100, 2388023)(request, response)
    if (!isCreation && (isHeld || found?.status === 'PENDING' || found?.status === 'DISABLED'))
      return void refuse(100, 2388039)(request, response)
    platform.answer(request, response)
    if (!isCreation && found) {
      edits.add(textOf(components))
      changed(found.id)
    }
    if (isCreation && !found) keepMade(askedAt)
  }

  function keepMade(askedAt: number) {
    const one = platform.templates.at(-1)
    if (one) made.set(one.id, { text: textOf(one.components), isOther: false, askedAt, madeAt: performance.now() })
  }

  const changed = (id: string) => {
    const one = made.get(id)
    if (one) one.isOther = true
  }

  respondWith((call, response, n) => {
    const mood = isCalm ? 'well' : oneByWeight(random, sendMoods)
    const { name, language } = call.body['template'] as { name: string; language: { code: string } }
    const template = platform.templates.find(
      (one) => one.account === accountOf(call.to) && one.name === name && one.language === language.code,
    )
    const code = typeof mood === 'number' ? mood : codeOf(template)
    const answers = sends.get(call.messageId) ?? []
    sends.set(call.messageId, [...answers, code])
    const answer = () => {
      if (code !== null) return refuseSend(code, code === 131000 ? 500 : 400)(call, response, n)
      json(response, { messaging_product: 'whatsapp', contacts: [], messages: [{ id: `wamid.${call.messageId}` }] })
    }
    setTimeout(answer, mood === 'late' ? between(random, 0, lateMs) : 0)
  })
  platform.answerWith((request, response) => void respond(request, response))

  return {
    ...platform,
    made,
    sends,
    edits,
    changed,
    /** It makes one by itself, in its own pages. */
    make(account: string, { name, language, text }: { name: string; language: string; text: string }) {
      const isTaken = platform.templates.some(
        (one) => one.account === account && one.name === name && one.language === language,
      )
      if (isTaken) return
      const body = Buffer.from(JSON.stringify({ name, language, category: 'UTILITY', components: componentsOf(text) }))
      const path = `/v23.0/${account}/message_templates`
      act({ method: 'POST', path, query: new URLSearchParams(), authorization: '', body }, unheard)
    },
    /** Does and answers everything well from now on. */
    calm: () => void (isCalm = true),
  }
}

export type MoodyTemplates = Awaited<ReturnType<typeof startMoodyTemplates>>

const delayed = (response: ServerResponse, ms: number) =>
  ({
    writeHead: (status: number, headers: Record<string, string>) => ({
      end: (body: string) => void setTimeout(() => response.writeHead(status, headers).end(body), ms),
    }),
  }) as unknown as ServerResponse

/** Of each business account other people are written to. */
export const personOf = (account: string, n: number) => `+1555${account.slice(-3)}000${n}`
const accountOf = (to: string) => `200000000${to.slice(5, 8)}`

export const textOf = (components: PlatformTemplate['components']) =>
  String(components.find(({ type }) => type === 'BODY')?.['text'])

export const componentsOf = (text: string) => [{ type: 'BODY', text, example: { body_text: [['Ana']] } }]

/** What it refuses a send of the template with. */
export function codeOf(template: PlatformTemplate | undefined): number | null {
  if (template?.status === 'APPROVED') return null
  if (template?.status === 'PAUSED') return 132015
  return template?.status === 'DISABLED' ? 132016 : 132001
}

/** The platform's words for what becomes of one, and what it lists it as then. */
const events: Weighted<readonly [event: string, status: string]>[] = [
  [6, ['APPROVED', 'APPROVED']],
  [2, ['REINSTATED', 'APPROVED']],
  [1, ['REJECTED', 'REJECTED']],
  [3, ['PAUSED', 'PAUSED']],
  [1, ['DISABLED', 'DISABLED']],
  [1, ['IN_APPEAL', 'IN_APPEAL']],
  [2, ['PENDING_DELETION', 'PENDING_DELETION']],
]

let texts = 0

/** Something becomes of one of its templates; what it would tell of it, if it does. */
export function changeOne(platform: MoodyTemplates, random: Random): Telling[] {
  if (platform.templates.length === 0) return []
  const one = oneOf(random, platform.templates)
  if (one.status === 'PENDING_DELETION' || random() < 0.12) {
    platform.templates.splice(platform.templates.indexOf(one), 1)
    return [telling(one, 'message_template_status_update', { event: 'DELETED', reason: 'NONE' })]
  }
  const what = random()
  if (what < 0.7) {
    const [event, status] = oneByWeight(random, events)
    return [review(one, event, status)]
  }
  if (what < 0.8) one.category = oneOf(random, ['UTILITY', 'MARKETING'])
  else if (what < 0.9) one.quality_score = { score: oneOf(random, ['GREEN', 'YELLOW', 'RED']) }
  else {
    one.components = componentsOf(`Theirs {{1}}, ${++texts} of ${one.account}.`)
    platform.changed(one.id)
  }
  return besideOf(one).slice(what < 0.8 ? 0 : what < 0.9 ? 1 : 2, what < 0.8 ? 1 : what < 0.9 ? 2 : 3)
}

/** Its status is another one. */
export function review(one: PlatformTemplate, event: string, status: string): Telling {
  one.status = status
  return telling(one, 'message_template_status_update', { event, reason: 'NONE' })
}

/** All that it has to tell of one, as it stands now. */
export const stateOf = (one: PlatformTemplate, time?: number): Telling[] => {
  const all = [telling(one, 'message_template_status_update', { event: one.status, reason: 'NONE' }), ...besideOf(one)]
  return time === undefined ? all : all.map((each) => ({ ...each, time }))
}

const besideOf = (one: PlatformTemplate): Telling[] => [
  telling(one, 'template_category_update', { previous_category: 'UTILITY', new_category: one.category }),
  telling(one, 'message_template_quality_update', { new_quality_score: one.quality_score?.score ?? 'UNKNOWN' }),
  telling(one, 'message_template_components_update', { message_template_element: textOf(one.components) }),
]

const telling = (one: PlatformTemplate, field: string, value: object): Telling => ({
  account: one.account ?? '',
  field,
  time: Math.floor(Date.now() / 1000),
  value: {
    message_template_id: Number(one.id),
    message_template_name: one.name,
    message_template_language: one.language.replace('_', '-'),
    ...value,
  },
})
