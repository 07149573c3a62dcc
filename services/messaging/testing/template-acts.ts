import { Problem } from '@app/shared/api/problem.ts'
import { systemCaller } from '@app/shared/bus/ask.ts'
import { insist } from '@app/test/each-step.ts'
import { endConnections } from '@app/test/end-connections.ts'
import { between, oneByWeight, oneOf, type Random, type Weighted } from '@app/test/faults/random.ts'
import type { App } from '../app.ts'
import { sendMessage } from '../sends/send-message.ts'
import { changeOne, componentsOf, personOf, review } from './moody-templates.ts'
import { idIn } from './id-in.ts'
import { nthOf } from './scene.ts'
import {
  connect,
  disconnect,
  type TemplateNumber,
  type TemplateScene,
  tellOf,
  type WantedTemplate,
} from './template-scene.ts'

type Act = (scene: TemplateScene, number: TemplateNumber, random: Random) => unknown

/** Somebody creates, edits, sends, tells, changes or breaks something. */
export const actOnTemplates = (scene: TemplateScene, random: Random): unknown =>
  oneByWeight(random, acts)(scene, oneOf(random, scene.numbers), random)

let count = 0

const newText = ({ state }: TemplateNumber) => `Hi {{1}}, text ${++count} of ${state.business_account_id}.`

export const names = Array.from({ length: 8 }, (_, n) => `t${n}`)
export const languages = ['en_US', 'de']

/** How long a caller waits: mostly as long as usual, or so that the platform has a moment. */
const deadlineOf = (random: Random) => (random() < 0.2 ? 3_000 + between(random, 50, 400) : 20_000)

/**
 * What may always be answered: the platform's refusals and failures, and that the number is away; on a busy machine also that a turn
 * did not come in time, or that another try still runs.
 */
const usualFailures = [
  'upstream_unavailable',
  'upstream_refused',
  'invalid_field_value',
  'account_not_connected',
  'service_unavailable',
  'idempotency_in_progress',
]

/** The answer; or the failure, which has to be one of these, or a usual one. */
async function answerOf<T>(number: TemplateNumber, failures: string[], ask: () => Promise<T>) {
  try {
    return { answer: await insist(ask), failure: null }
  } catch (err) {
    const failure = err instanceof Problem ? err.failure : ''
    const may = failure === 'account_not_connected' ? number.wasAway : [...usualFailures, ...failures].includes(failure)
    if (!may) throw err
    return { answer: null, failure }
  }
}

const create: Act = async (scene, number, random) => {
  const text = newText(number)
  const body = {
    name: oneOf(random, names),
    language: oneOf(random, languages),
    category: 'UTILITY',
    components: componentsOf(text),
  }
  const unanswered = { answer: null, answeredAt: Infinity, takenAt: Infinity }
  const wanted: WantedTemplate = { key: `key ${++count}`, number, body, text, ...unanswered, failures: [] }
  scene.wanted.push(wanted)
  // Somebody else of the business account wants the name, too.
  const others = scene.numbers.filter(({ state }) => state.business_account_id === number.state.business_account_id)
  const rival = { ...wanted, key: `key ${++count}`, number: oneOf(random, others), text: newText(number), failures: [] }
  rival.body = { ...body, components: componentsOf(rival.text) }
  const asked = [askToCreate(scene, wanted, random, deadlineOf(random))]
  if (random() < 0.4) asked.push(askToCreate(scene, wanted, random, deadlineOf(random)))
  if (random() < 0.3) {
    scene.wanted.push(rival)
    asked.push(askToCreate(scene, rival, random, deadlineOf(random)))
  }
  await Promise.all(asked)
}

/** One that was asked for, perhaps answered: by its key, of any instance. */
const createAgain: Act = async (scene, _number, random) => {
  if (scene.wanted.length > 0)
    await askToCreate(scene, oneOf(random, scene.wanted.slice(-12)), random, deadlineOf(random))
}

/** Asks for it once; what a key was answered stays its answer. */
export async function askToCreate(
  scene: TemplateScene,
  wanted: WantedTemplate,
  random: Random,
  deadlineMs = 20_000,
): Promise<string | null> {
  const { key, number, body, text } = wanted
  const asks = oneOf(random, number.asks)
  const { platform, broken, stolen } = scene
  const { answer, failure } = await answerOf(number, ['template_already_exists'], () =>
    // Whoever took it over may have ended it by now.
    asks.create(body, { key, deadlineMs }).catch((err: unknown) => {
      throw stolen.has(key) ? new Problem('upstream_unavailable', { cause: err }) : err
    }),
  )
  if (answer) {
    const given = JSON.stringify(answer.data)
    const before = wanted.answer && JSON.stringify(wanted.answer)
    if (before !== null && before !== given) broken.push(`${key}: answered with ${before}, and with ${given}`)
    if (before === null) wanted.answeredAt = performance.now()
    wanted.answer = answer.data
    const made = platform.made.get(answer.data.provider_template_id ?? '')
    if (made?.text !== text) broken.push(`${key}: ${text} was answered with ${given}, which is ${made?.text}`)
  }
  if (failure === 'template_already_exists') {
    wanted.takenAt = performance.now()
    if (wanted.answer) broken.push(`${key}: it was answered, and then refused`)
  }
  if (failure !== null) wanted.failures.push(stolen.has(key) ? 'stolen' : failure)
  return failure
}

const edit: Act = async ({ platform, broken }, number, random) => {
  const text = newText(number)
  const name = oneOf(random, names)
  const failures = ['resource_not_found', 'template_not_editable']
  const asks = oneOf(random, number.asks)
  const { answer } = await answerOf(number, failures, () =>
    asks.edit(
      name,
      { components: componentsOf(text) },
      { language: oneOf(random, languages) },
      { deadlineMs: deadlineOf(random) },
    ),
  )
  if (answer && !platform.edits.has(text)) broken.push(`${name}: its edit was answered, and not made`)
}

const sync: Act = async (_scene, number, random) => {
  const asks = oneOf(random, number.asks)
  await answerOf(number, [], () => asks.sync({ deadlineMs: deadlineOf(random) }))
}

const look: Act = async (scene, number, random) => {
  const { numbers, broken } = scene
  broken.push(...(await wrongInList(number, random)))
  const asks = oneOf(random, number.asks)
  const { organization_id: own } = number.state
  const { phone_number_id: phone } = oneOf(
    random,
    numbers.filter(({ state }) => state.organization_id !== own),
  ).state
  const foreign = await answerOf(number, ['resource_not_found'], () => asks.list({}, { phone }))
  if (foreign.answer) broken.push(`${own} lists the templates of ${phone}`)
  await answerOf(number, ['resource_not_found'], () => asks.get(oneOf(random, names)))
}

/** Each name and language is there once, and nothing is another business account's. */
async function wrongInList({ state, asks }: TemplateNumber, random: Random): Promise<string[]> {
  const { data } = await insist(() => oneOf(random, asks).list({ status: 'all', limit: '100' }))
  const keys = data.map(({ name, language }) => `${name} ${language}`)
  const twice = keys.filter((key, n) => keys.indexOf(key) !== n)
  const foreign = data.filter(({ content }) => !content.includes(` of ${state.business_account_id}.`))
  return [
    ...twice.map((key) => `${key} is listed twice`),
    ...foreign.map(({ id, content }) => `${state.business_account_id} has ${id}: ${content}`),
  ]
}

const send: Act = (scene, number, random) =>
  trySend(scene, number, {
    name: oneOf(random, names),
    language: oneOf(random, languages),
    app: oneOf(random, scene.apps),
  })

interface Sending {
  name: string
  language: string
  app: App
}

/** A send is answered as the template stands here, unless that changed meanwhile. */
export async function trySend(scene: TemplateScene, number: TemplateNumber, { name, language, app }: Sending) {
  const { state } = number
  const before = await standingOf(scene, number, name, language)
  const key = `key ${++count}`
  const caller = { ...systemCaller(state.organization_id), deadline: Infinity, idempotency: { key, fingerprint: key } }
  const components = [{ type: 'body' as const, parameters: [{ type: 'text' as const, text: 'Ana' }] }]
  const body = {
    messaging_product: 'chat' as const,
    to: personOf(state.business_account_id, Number(state.phone_number_id.slice(-1))),
    type: 'template' as const,
    template: { name, language: { code: language }, components },
  }
  const input = { params: { phone_number_id: state.phone_number_id }, query: {}, body }
  const { answer, failure } = await answerOf(number, sendFailures, () => sendMessage(app, input, caller))
  if (answer && 'whole' in answer) scene.accepted.set(idIn(answer.body), { number, name, language })
  const after = await standingOf(scene, number, name, language)
  if (JSON.stringify(before) === JSON.stringify(after) && !fits(before, failure))
    scene.broken.push(`${name} ${language} stands as ${JSON.stringify(before)}: a send is answered with ${failure}`)
  return failure
}

const sendFailures = [
  'template_not_found',
  'template_not_approved',
  'template_paused',
  'template_disabled',
  'rate_limit_exceeded',
]

interface Standing {
  status: string
  word: string
  isShown: boolean
  knownAt: string
}

async function standingOf({ sql }: TemplateScene, { state }: TemplateNumber, name: string, language: string) {
  const [row] = await sql<Standing[]>`
    select status, upstream_status as word, held_until is null or held_until > now() as is_shown, known_at::text as known_at
    from templates where organization_id = ${state.organization_id} and business_account_id = ${state.business_account_id}
      and name = ${name} and language = ${language}
  `
  return row
}

const wordsOfNothing = ['VANISHED', 'DELETED', 'PENDING_DELETION']

function fits(standing: Standing | undefined, failure: string | null): boolean {
  if (failure === 'account_not_connected') return true
  const asks = !standing?.isShown || [...wordsOfNothing, 'DOUBTED'].includes(standing.word)
  if (asks && (failure === 'rate_limit_exceeded' || usualFailures.includes(failure ?? ''))) return true
  // A creation may have come and gone meanwhile.
  if (!standing && failure === 'template_not_approved') return true
  if (!standing?.isShown || wordsOfNothing.includes(standing.word)) return failure === 'template_not_found'
  if (standing.word === 'PAUSED') return failure === 'template_paused'
  if (standing.word === 'DISABLED') return failure === 'template_disabled'
  return failure === (standing.status === 'approved' ? null : 'template_not_approved')
}

/** Something becomes of a template; mostly the platform will tell of it, and sometimes with an id that nobody can read. */
const become: Act = ({ platform, untold }, _number, random) => {
  for (const told of changeOne(platform, random)) {
    const value = random() < 0.15 ? { ...told.value, message_template_id: null } : told.value
    if (random() < 0.75) untold.push({ ...told, value })
  }
}

/** Most are approved at first. */
const approve: Act = ({ platform, untold }, _number, random) => {
  const waiting = platform.templates.filter(({ status }) => status === 'PENDING')
  if (waiting.length > 0) untold.push(review(oneOf(random, waiting), 'APPROVED', 'APPROVED'))
}

const make: Act = ({ platform }, number, random) => {
  const text = newText(number)
  platform.make(number.state.business_account_id, {
    name: oneOf(random, names),
    language: oneOf(random, languages),
    text,
  })
}

/** In any order, and as often as it likes. */
const tell: Act = async ({ apps, untold, told }, _number, random) => {
  if (untold.length === 0) return
  const n = random() < 0.7 ? 0 : between(random, 0, untold.length - 1)
  const telling = nthOf(untold, n)
  if (random() < 0.7) untold.splice(untold.indexOf(telling), 1)
  told.push(telling)
  await tellOf(oneOf(random, apps), telling)
}

const leave: Act = (scene, number) => disconnect(scene, number)
const comeBack: Act = (scene, _number, random) => {
  const away = scene.numbers.filter(({ state }) => !state.attached)
  return away.length === 0 ? undefined : connect(scene, oneOf(random, away))
}

/** As if who runs them had died long ago. He lives, and goes on beside what is made of them. */
const stealCreations: Act = async ({ sql, stolen }) => {
  await sql`update templates set held_until = now() where held_until > now()`
  const keys = await sql<{ key: string }[]>`
    update idempotency.keys set held_until = now() where status = 0 and held_until > now() returning key
  `
  for (const { key } of keys) stolen.add(key)
}

const acts: Weighted<Act>[] = [
  [4, create],
  [4, createAgain],
  [3, edit],
  [3, sync],
  [2, look],
  [6, send],
  [5, become],
  [4, approve],
  [1, make],
  [9, tell],
  [1, leave],
  [4, comeBack],
  [1, stealCreations],
  [1, ({ sql }) => endConnections(sql)],
]
