import { insist } from '@app/test/each-step.ts'
import { randomOf } from '@app/test/faults/random.ts'
import { until } from '@app/test/until.ts'
import { expect } from 'vitest'
import { codeOf, stateOf, textOf } from './moody-templates.ts'
import { hurry } from './random-acts.ts'
import { nthOf } from './scene.ts'
import { askToCreate, languages, names, trySend } from './template-acts.ts'
import type { PlatformTemplate } from './template-platform.ts'
import { connect, type TemplateNumber, type TemplateScene, tellOf, type WantedTemplate } from './template-scene.ts'

/**
 * The platform is well again, has told the last state of all, and everything is read once more: what does not hold then, or
 * did not on the way there.
 */
export async function settleTemplates(scene: TemplateScene): Promise<string[]> {
  const { platform, numbers, wanted, apps, untold, told, broken } = scene
  const random = randomOf(1, 'in the end')
  platform.calm()
  for (const number of numbers) await connect(scene, number)
  await quiet(scene)
  scene.stolen.clear()
  broken.push(...(await wrongRefusals(scene)))
  for (const one of wanted) {
    const { takenAt } = one
    broken.push(...wrongEnd(scene, { ...one, takenAt }, await askToCreate(scene, one, random)))
  }
  const soon = Math.floor(Date.now() / 1000) + 1
  const last = platform.templates.flatMap(stateOf).map((telling) => ({ ...telling, time: soon }))
  // What was told before comes behind it once more.
  for (const [n, telling] of [...last, ...untold, ...told.slice(-60)].entries()) await tellOf(nthOf(apps, n), telling)
  await quiet(scene)
  broken.push(...wrongOfTold(scene, await rowsOf(scene)))
  // The first may have the counts of a reading that somebody has left.
  for (const { asks } of numbers) for (const ask of [...asks, ...asks]) await insist(() => ask.sync())
  await quiet(scene)
  broken.push(...wrongRows(scene, await rowsOf(scene)), ...wrongKeys(scene), ...(await wrongLists(scene)))
  broken.push(...(await wrongAnswers(scene)))
  await quiet(scene)
  broken.push(...(await wrongMessages(scene)))
  return broken
}

/** A refusal ends a key, and what comes of it later is nobody's. */
const endings = ['invalid_field_value', 'upstream_refused', 'stolen']

/** It has its template, or somebody else has the name: nobody's own is in his way. */
function wrongEnd(
  { platform }: TemplateScene,
  { key, text, failures, takenAt }: WantedTemplate,
  failure: string | null,
) {
  if (failure === null) return []
  if (failure !== 'template_already_exists') return [`${key}: it ends with ${failure}`]
  if (failures.some((before) => endings.includes(before))) return []
  const own = platform.templates.find(({ id }) => platform.made.get(id)?.text === text)
  const made = platform.made.get(own?.id ?? '')
  const isOther = !own || !made || own.status === 'PENDING_DELETION' || made.isOther || made.madeAt > takenAt
  return isOther ? [] : [`${key}: its own ${own.id} stands in its way, after ${failures.join()}`]
}

/** Nothing is left to do, but for what is told of templates that nobody has. */
async function quiet({ sql, apps }: TemplateScene) {
  await until(async () => {
    await hurry({ sql, apps })
    const items = await sql`
      select i.lane, i.item -> 'part' as part from callback_items i
      join templates t on t.organization_id = split_part(i.lane, ':', 1) and t.business_account_id = i.item ->> 'entryId'
        and t.name = i.item -> 'part' -> 'value' ->> 'message_template_name'
        and replace(t.language, '_', '-') = i.item -> 'part' -> 'value' ->> 'message_template_language'
        and t.provider_template_id = i.item -> 'part' -> 'value' ->> 'message_template_id'
      limit 2
    `
    const left = {
      items: [...items],
      lanes: [...(await sql`select id from callback_lanes where held_until > now() limit 2`)],
      sends: [...(await sql`select message_id from sends limit 2`)],
      held: [...(await sql`select id from templates where held_until > now() limit 2`)],
      keys: [...(await sql`select key from idempotency.keys where status = 0 and held_until > now() limit 2`)],
    }
    expect(left).toEqual({ items: [], lanes: [], sends: [], held: [], keys: [] })
  }, 20_000)
}

interface Row {
  place: string
  name: string
  language: string
  word: string
  category: string
  text: string
  quality: string | null
  templateId: string | null
  isHeld: boolean
}

const rowsOf = ({ sql }: TemplateScene) => sql<Row[]>`
  select organization_id || ' ' || business_account_id as place, name, language, upstream_status as word, category,
    components -> 0 ->> 'text' as text, nullif(quality, 'UNKNOWN') as quality, provider_template_id as template_id,
    held_until is not null as is_held
  from templates
`

const placeOf = ({ state }: TemplateNumber) => `${state.organization_id} ${state.business_account_id}`

/** What is told, as it is kept. */
const wordsOf = (one: PlatformTemplate) => [
  one.status,
  one.category,
  one.quality_score?.score ?? null,
  textOf(one.components),
]

const isAs = ({ word, category, quality, text }: Row, one: PlatformTemplate) =>
  JSON.stringify([word, category, quality, text]) === JSON.stringify(wordsOf(one))

const differs = (row: Row, one: PlatformTemplate) => `${JSON.stringify(row)}: it is ${JSON.stringify(wordsOf(one))}`

/** What was told last stands there, before anything is read. */
const wrongOfTold = ({ platform }: TemplateScene, rows: Row[]) =>
  rows.flatMap((row) => {
    const one = platform.templates.find(({ id }) => id === row.templateId)
    return one && !isAs(row, one) ? [`told, ${differs(row, one)}`] : []
  })

const goneWords = ['VANISHED', 'DELETED', 'PENDING_DELETION']

/** Each that the platform has is there as it has it, all else is gone, and no creation hangs. */
function wrongRows({ platform, numbers }: TemplateScene, rows: Row[]) {
  return [...new Map(numbers.map((number) => [placeOf(number), number])).values()].flatMap((number) => {
    const own = rows.filter(({ place }) => place === placeOf(number))
    const theirs = platform.templates.filter(({ account }) => account === number.state.business_account_id)
    const missing = theirs.filter(({ id }) => !own.some(({ templateId }) => templateId === id))
    return [
      ...missing.map(({ id, name }) => `${placeOf(number)} lacks ${id}, ${name}`),
      ...own.flatMap((row) => {
        const one = theirs.find(({ id }) => id === row.templateId)
        if (row.isHeld) return [`${JSON.stringify(row)} is held`]
        if (one) return isAs(row, one) ? [] : [`read, ${differs(row, one)}`]
        return goneWords.includes(row.word) ? [] : [`${JSON.stringify(row)} is no more`]
      }),
    ]
  })
}

/** For a key that has its answer nothing is asked any more. */
const wrongKeys = ({ wanted, platform }: TemplateScene) =>
  wanted.flatMap(({ key, text, answeredAt }) =>
    [...platform.made].flatMap(([id, made]) =>
      made.text === text && made.askedAt > answeredAt ? [`${key}: it was answered, and has made ${id} since`] : [],
    ),
  )

const statusOf = (word: string) => {
  if (word === 'APPROVED') return 'approved'
  return ['PENDING', 'IN_APPEAL', 'PAUSED'].includes(word) ? 'pending' : 'rejected'
}

/** All numbers of a business account list what the platform has, at each instance. */
async function wrongLists({ numbers, platform }: TemplateScene) {
  const broken: string[] = []
  for (const number of numbers) {
    const theirs = platform.templates
      .filter(({ account }) => account === number.state.business_account_id)
      .map(({ id, name, language, status, category, components }) =>
        JSON.stringify([id, name, language, statusOf(status), category, textOf(components)]),
      )
    for (const ask of number.asks) {
      const { data } = await ask.list({ status: 'all', limit: '100' })
      const listed = data.map((one) =>
        JSON.stringify([one.provider_template_id, one.name, one.language, one.status, one.category, one.content]),
      )
      const more = listed.filter((one, n) => !theirs.includes(one) && data[n]?.status !== 'rejected')
      const less = theirs.filter((one) => !listed.includes(one))
      if (more.length + less.length > 0)
        broken.push(`${placeOf(number)} lists ${more.join()} too much, and lacks ${less.join()}`)
    }
  }
  return broken
}

const failureByCode = new Map([
  [132001, 'template_not_found'],
  [132015, 'template_paused'],
  [132016, 'template_disabled'],
])

/** What may be sent is sent at once, from each number, and nothing else is. */
async function wrongAnswers(scene: TemplateScene) {
  const broken: string[] = []
  const all = names.flatMap((name) => languages.map((language) => ({ name, language })))
  for (const number of scene.numbers) {
    for (const [n, { name, language }] of all.entries()) {
      const one = scene.platform.templates.find(
        (other) =>
          other.account === number.state.business_account_id && other.name === name && other.language === language,
      )
      const failure = await trySend(scene, number, { name, language, app: nthOf(scene.apps, n) })
      if (!mayBe(one, failure)) broken.push(`${placeOf(number)}: ${name} that is ${one?.status} is ${failure}`)
    }
  }
  return broken
}

function mayBe(one: PlatformTemplate | undefined, failure: string | null) {
  const code = codeOf(one)
  if (code !== 132001) return failure === (failureByCode.get(code ?? 0) ?? null)
  if (one && one.status !== 'PENDING_DELETION') return failure === 'template_not_approved'
  return failure === 'template_not_found' || failure === 'rate_limit_exceeded'
}

/** What was accepted ends as the platform has answered it; without a question since the number was disconnected. */
async function wrongMessages({ sql, accepted, platform }: TemplateScene) {
  const messages = await sql<{ id: string; status: string; code: string | null }[]>`
    select id, status, error ->> 'code' as code from messages where direction = 'outbound'
  `
  const byId = new Map(messages.map((message) => [message.id, message]))
  return [...accepted.keys()].flatMap((id) => {
    const { status, code } = byId.get(id) ?? { status: 'lost', code: null }
    const answers = platform.sends.get(id)
    const last = answers?.at(-1)
    const isRight =
      last === null
        ? status === 'sent'
        : status === 'failed' &&
          [failureByCode.get(last ?? 0) ?? 'upstream_unavailable', 'account_not_connected'].includes(code ?? '')
    return isRight ? [] : [`${id}: it is ${status} (${code}), and was answered with ${answers?.join()}`]
  })
}

const noted = new Map([
  [132001, 'DOUBTED'],
  [132015, 'PAUSED'],
  [132016, 'DISABLED'],
])

/** What the platform refused to send is known of the template, unless something was heard of it since the call began. */
async function wrongRefusals({ sql, accepted }: TemplateScene) {
  const refused = await sql<{ messageId: string; code: number; begunAt: Date }[]>`
    select message_id, upstream_code as code, begun_at from send_attempts where upstream_code = any(${[...noted.keys()]})
  `
  const broken: string[] = []
  for (const { messageId, code, begunAt } of refused) {
    const { number, name, language } = accepted.get(messageId) ?? {}
    const words = [noted.get(code) ?? '', ...(code === 132001 ? goneWords : [])]
    const rows = await sql<{ word: string }[]>`
      select upstream_status as word from templates
      where organization_id = ${number?.state.organization_id ?? ''} and name = ${name ?? ''} and language = ${language ?? ''}
        and business_account_id = ${number?.state.business_account_id ?? ''}
        and known_at < ${begunAt} and upstream_status <> all(${words})
    `
    for (const { word } of rows) broken.push(`${messageId}: ${name} was refused with ${code}, and is ${word}`)
  }
  return broken
}
