import type { Bench } from '../bench.ts'
import type { Figure, FigureName } from '../figures.ts'
import { load, writeRequests } from '../load/wrk.ts'
import type { Options } from '../options.ts'
import { mostRows, type Plan, scannedTables } from '../plans.ts'
import { untilIdle } from '../project/idle.ts'

/** A page of a list. */
export interface Page {
  name: string
  /** With `/v1`. */
  path: string
}

const connections = 4
/** There are many pages, so each has a part of a measurement's time. */
const partOfTime = 4
/** What a sequential scan may read: tables that have only some rows are read so rightly. */
const fewRows = 1_000
const asks = 3
/** A quick slice loads one page of so many. */
const loadedOfQuick = 5

/** Those whose time is measured; what each page reads is told of all of them. */
export const pagesToLoad = ({ quick }: Pick<Options, 'quick'>, pages: Page[]): Page[] =>
  quick ? pages.filter((_, n) => n % loadedOfQuick === 0) : pages

/** The p95 of each page, in milliseconds, each asked for alone. */
export async function p95OfPages({ project, folder }: Bench, pages: Page[], seconds: number) {
  const { stack } = await project()
  const { base_url: baseUrl, api_key: key } = stack()
  const headers = { authorization: `Bearer ${key}` }
  const p95s: Record<string, number> = {}
  for (const { name, path } of pages) {
    const requests = writeRequests(folder, 'page', new URL(baseUrl).origin, [{ method: 'GET', path, headers }])
    const { p95Ms } = await load(requests, connections, Math.max(1, Math.round(seconds / partOfTime)))
    p95s[name] = p95Ms
    await untilIdle(await project())
  }
  return p95s
}

/** What a page's statements read. */
export interface Reads {
  /** The most rows of one step. */
  rows: number
  /** Tables that were read in sequence. */
  scanned: string[]
  /** The plan, where a step reads many. */
  plan?: unknown
}

/** What each page reads, by the plans of its very statements (`isList`); undefined when the server tells no plans. */
export async function readsOfPages(
  bench: Bench,
  pages: Page[],
  isList: RegExp,
): Promise<Record<string, Reads> | undefined> {
  const watch = await bench.plans()
  if (!watch) return undefined
  const plans = await watch(pages.map((page) => () => ask(bench, page)))
  return Object.fromEntries(pages.map(({ name }, n) => [name, readsIn(name, plans[n] ?? [], isList)]))
}

async function ask({ project }: Bench, { name, path }: Page) {
  const { base_url: baseUrl, api_key: key } = (await project()).stack()
  for (let n = 0; n < asks; n++) {
    const answer = await fetch(new URL(path, baseUrl), { headers: { authorization: `Bearer ${key}` } })
    if (!answer.ok) throw new Error(`${name}: ${answer.status} ${await answer.text()}`)
    await answer.arrayBuffer()
  }
}

function readsIn(name: string, plans: Plan[], isList: RegExp): Reads {
  const lists = plans.filter(({ statement }) => isList.test(statement))
  if (lists.length === 0) throw new Error(`${name}: its statement was not seen`)
  const greedy = lists.find((plan) => mostRows([plan]) >= fewRows)
  return {
    rows: mostRows(lists),
    scanned: [...new Set(lists.flatMap((plan) => scannedTables(plan, fewRows)))],
    ...(greedy && { plan: greedy.whole }),
  }
}

/** How many pages read a table in sequence, and which; nothing when the server tells no plans. */
export function scanFigure(name: FigureName, reads: Record<string, Reads> | undefined): Figure[] {
  if (!reads) return []
  const scans = Object.entries(reads).flatMap(([page, { scanned }]) =>
    scanned.length > 0 ? [`${page} reads all of ${scanned.join(', ')}`] : [],
  )
  return [{ name, rounds: [scans.length], from: scans.join('; ') }]
}

/** For a note of a page. */
export const readsText = (reads: Reads | undefined): string =>
  reads ? `; a step reads ${reads.rows} rows at most` : ''
