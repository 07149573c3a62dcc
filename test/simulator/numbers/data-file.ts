import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { Medium } from '../media/media.ts'
import { PersonEntry } from '../messages/people.ts'
import { Deletion, Template } from '../templates/template.ts'
import { PhoneNumber } from './numbers.ts'

/** What outlives a restart: the numbers with their tokens, who wrote when, so that windows stay open, whose the files are, and templates. */
const Data = z.strictObject({
  numbers: z.array(PhoneNumber),
  /** Business accounts. */
  subscriptions: z.array(z.string()).default([]),
  people: z.array(PersonEntry),
  media: z.array(Medium).default([]),
  templates: z.array(Template).default([]),
  deletions: z.array(Deletion).default([]),
})
type Data = z.output<typeof Data>

const gatherMs = 1_000

/** @throws when the file is there and is not one of ours: better than to forget the tokens that others hold. */
export async function loadData(path: string | undefined): Promise<Data> {
  const text = path === undefined ? undefined : await readFile(path, 'utf8').catch(ifMissing)
  if (text === undefined) return Data.parse({ numbers: [], people: [] })
  try {
    return Data.parse(JSON.parse(text))
  } catch (err) {
    throw new Error(`${path} is not a data file of the simulator`, { cause: err })
  }
}

function ifMissing(err: unknown) {
  if (err instanceof Error && 'code' in err && err.code === 'ENOENT') return undefined
  throw err
}

export type DataFile = ReturnType<typeof createDataFile>

/** Without a path, nothing is kept. */
export function createDataFile(path: string | undefined, snapshot: () => Data) {
  let last = Promise.resolve()
  let soon: Promise<void> | undefined
  const stopping = new AbortController()

  /** Resolves when what is known now is on the disk; writes go one after the other. */
  function save() {
    if (path === undefined) return last
    const write = () => writeWhole(path, JSON.stringify(snapshot()))
    last = last.then(write, write)
    return last
  }

  async function gather() {
    await delay(gatherMs, undefined, { signal: stopping.signal }).catch(() => undefined)
    soon = undefined
    await save()
  }

  return {
    save,
    /** Within a second, together with whatever else changes meanwhile. */
    saveSoon: () => {
      soon ??= gather()
      // A full disk shows where somebody waits: in `save` and `stop`.
      soon.catch(() => undefined)
    },
    stop: async () => {
      stopping.abort()
      await soon
      await last
    },
  }
}

/** Into a file beside it and then renamed, so that a crash leaves the old one or the new one whole. */
async function writeWhole(path: string, text: string) {
  await mkdir(dirname(path), { recursive: true })
  const file = await open(`${path}.new`, 'w', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(`${path}.new`, path)
}
