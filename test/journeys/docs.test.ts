import { mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventType } from '@app/shared/contracts/webhooks.ts'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { isRun, pages, readPage, root, type Snippet } from '../docs/pages.ts'
import { differences } from '../docs/shape.ts'
import { openShell, type Shell } from '../docs/shell.ts'
import { client, type Json, until } from './client.ts'
import { type Receiver, startReceiver } from './receiver.ts'

/** The page whose first commands all others begin with. */
const beginning = readPage('docs/quick-start.md')

let folder: string
let receiver: Receiver
/** What they leave in a shell, as commands. */
let begun: string
/** Subscriptions that are made here: their endpoints end with the test. Others that are printed are those of tests that run beside. */
const subscriptions = new Set<string>()

beforeAll(async () => {
  // The repository as it is after `npm start`: its files, and beside them the data of the stack.
  folder = mkdtempSync(join(tmpdir(), 'messaging-service-docs-'))
  for (const name of readdirSync(root)) if (name !== '.local') symlinkSync(join(root, name), join(folder, name))
  symlinkSync(inject('stackDir'), join(folder, '.local'))
  begun = await begin()
  receiver = await startReceiver()
  const body = { url: receiver.url, events: eventType.options }
  const created = await client().api('POST', '/webhook_subscriptions', { body })
  expect(created.status).toBe(201)
  subscriptions.add(created.body.data.id)
})
afterAll(async () => {
  expect(subscriptions.size).toBeGreaterThan(1)
  for (const id of subscriptions) await client().api('DELETE', `/webhook_subscriptions/${id}`)
  receiver.close()
  rmSync(folder, { recursive: true })
})

const newShell = () => openShell(folder, { SVC_DATA_DIR: inject('stackDir') })

/** Once for all pages: they start Node four times. */
async function begin() {
  const shell = newShell()
  const [{ code } = { code: '' }] = beginning.snippets.filter(isRun)
  const names = [...code.matchAll(/^export (\w+)=/gm)].map(([, name]) => name)
  const { output, status } = await shell.run(`${code}\ndeclare -p ${names.join(' ')}\ndeclare -f`)
  shell.close()
  expect([status, names.length], output).toEqual([0, 4])
  return output
}

describe.concurrent.each(pages().filter(({ snippets }) => snippets.some(isRun)))('$path', (page) => {
  let shell: Shell
  const printed = new Map<string, string>()
  let last = { code: '', output: '' }

  beforeAll(async () => {
    shell = newShell()
    if (![beginning.path, 'README.md'].includes(page.path)) await paste(begun)
  })
  afterAll(() => shell.close())

  /** `org_…` stands for the last such id that was printed, as it does for a reader, who pastes such commands one by one. */
  async function paste(code: string) {
    const commands = /[a-z]_…/.test(code) ? code.split(/\n(?=[^\s#])/) : [code]
    for (const command of commands) {
      const named = command.replaceAll(/\b([a-z]+)_…/g, (words, kind: string) => printed.get(kind) ?? words)
      const { output, status } = await shell.run(named)
      for (const [id, kind = ''] of output.matchAll(/\b([a-z]+)_[0-9A-HJKMNP-TV-Z]{26}\b/g)) printed.set(kind, id)
      for (const id of madeIn(output)) subscriptions.add(id)
      expect(status, `${named}\n${output}`).toBe(0)
      last = { code: named, output }
    }
  }

  /** A question is asked again for a while, since what it shows may take a moment. */
  async function holdAnswer(shown: unknown) {
    const hold = () => expect(differences(shown, answerIn(last.output)), last.output).toEqual([])
    if (!isQuestion(last.code)) return hold()
    await until(async () => {
      if (differences(shown, answerIn(last.output)).length > 0) await paste(last.code)
      hold()
    }, 15_000)
  }

  const snippets = page.snippets.filter(isRun)
  for (const [n, snippet] of snippets.entries()) {
    test(`line ${snippet.line}: ${titleOf(snippet)}`, { concurrent: false }, async () => {
      const { language, code, webhook } = snippet
      if (language === 'sh') {
        await paste(code)
        // What is refused is shown: everything else that is asked on the pages has to be answered.
        if (!isRefusal(snippets[n + 1])) expect(last.output).not.toMatch(/^\{"error"/m)
      } else if (language === 'js') await paste(`node --input-type=module - <<'END'\n${code}\nEND`)
      else if (webhook === null) await holdAnswer(JSON.parse(code))
      else await until(() => expectDelivery(receiver, webhook, JSON.parse(code)), 30_000)
    })
  }
})

const titleOf = ({ language, code, webhook }: Snippet) =>
  webhook ?? (language === 'json' ? 'the answer' : (code.split('\n')[0] ?? '').slice(0, 80))

/** Their secret is shown once. */
const madeIn = (output: string) =>
  [...output.matchAll(/"id":"(wbs_\w+)"[^\n]*"initial_secret"/g)].flatMap(([, id]) => id ?? [])

const isRefusal = (next: Snippet | undefined) => next?.language === 'json' && /^ {2}"error"/m.test(next.code)

const isQuestion = (code: string) => !/ -(d|F|X) |^play|^for |^node/m.test(code)

function answerIn(output: string): Json {
  const line = output.split('\n').findLast((one) => one.startsWith('{') || one.startsWith('['))
  return line === undefined ? output : JSON.parse(line)
}

function expectDelivery({ of }: Receiver, type: string, shown: unknown) {
  const found = of(type).map(({ body }) => differences(shown, body))
  const [closest = [`no ${type} has come`]] = found.toSorted((a, b) => a.length - b.length)
  expect(closest).toEqual([])
}
