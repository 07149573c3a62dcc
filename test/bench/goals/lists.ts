import { listContacts } from '@app/shared/contracts/contacts.ts'
import { listConversations } from '@app/shared/contracts/conversations.ts'
import { median } from '../median.ts'
import type { ConnectedNumber } from '../project/connect-numbers.ts'
import { cursorAt } from '../project/cursor-at.ts'
import { type FilledDirectory, fillDirectory } from '../project/fill-directory.ts'
import type { Project } from '../project/project.ts'
import { dayMs } from '../project/ulid-sql.ts'
import { alternate, msText } from '../rounds.ts'
import { sizesOf } from '../sizes.ts'
import type { Goal } from './goal.ts'
import { type Page, p95OfPages, pagesToLoad, readsOfPages, readsText, scanFigure } from './measure-lists.ts'

/** Each list and filter of a number with many contacts and conversations against the same of one with few: the worst ratio of p95s. */
export const measureLists: Goal = async (bench) => {
  const { options, say } = bench
  const project = await bench.project()
  const [few, many] = (await bench.fixture()).numbers.slice(2)
  if (!few || !many) throw new Error('this needs four numbers')
  const sizes = sizesOf(options)
  say(`lists: writing ${sizes.few + sizes.many} contacts with their conversations …`)
  const pagesOfFew = pagesOf(project, few, await fillDirectory(project, few, sizes.few))
  const pagesOfMany = pagesOf(project, many, await fillDirectory(project, many, sizes.many))
  await bench.plans()
  const p95s = await alternate(options, {
    few: (seconds) => p95OfPages(bench, pagesToLoad(options, pagesOfFew), seconds),
    many: (seconds) => p95OfPages(bench, pagesToLoad(options, pagesOfMany), seconds),
  })
  const reads = await readsOfPages(bench, pagesOfMany, /from accounts a/)
  const ratios = pagesToLoad(options, pagesOfMany)
    .map(({ name }) => ratioOf(name, p95s))
    .toSorted((a, b) => b.ratio - a.ratio)
  const [worst] = ratios
  if (!worst) throw new Error('no pages')
  return {
    figures: [
      { name: 'lists', rounds: [worst.ratio], from: `${worst.name}, ${worst.from}` },
      ...scanFigure('listScans', reads),
    ],
    notes: [
      `lists, p95 with ${sizes.many} contacts and conversations : with ${sizes.few}`,
      ...ratios.map(
        ({ name, ratio, from }) => `${ratio.toFixed(2).padStart(8)} ×  ${name}: ${from}${readsText(reads?.[name])}`,
      ),
    ],
    details: { sizes, p95s, reads },
  }
}

function ratioOf(name: string, { few, many }: Record<'few' | 'many', Record<string, number>[]>) {
  const [ofFew, ofMany] = [few, many].map((rounds) => rounds.map((p95s) => p95s[name] ?? NaN))
  const ratios = ofMany?.map((value, round) => value / (ofFew?.[round] ?? NaN)) ?? []
  return { name, ratio: median(ratios), from: `${msText(median(ofMany ?? []))} : ${msText(median(ofFew ?? []))}` }
}

const since = (days: number) => encodeURIComponent(new Date(Date.now() - days * dayMs).toISOString())

function pagesOf(project: Project, { phoneNumberId }: ConnectedNumber, filled: FilledDirectory): Page[] {
  const { commonLabel, rareLabel, contactId, phoneNumber, conversationId, lastMessageAt } = filled
  const params = { phone_number_id: phoneNumberId }
  const phone = encodeURIComponent(phoneNumber)
  const contacts = {
    newest: '',
    'far down': `cursor=${cursorAt(project, listContacts, contactId, params)}`,
    'by number': `phone_number=${phone}`,
    'search, common': 'search=ana',
    'search, rare': `search=${encodeURIComponent('zoë quill')}`,
    'search, one letter': 'search=z',
    'search, digits': `search=${phone.slice(-9)}`,
    'search, nobody': 'search=nobody%20at%20all',
    'common label': `label_id=${commonLabel}`,
    'rare label': `label_id=${rareLabel}`,
    'common label, search': `label_id=${commonLabel}&search=ana`,
    'common label, by number': `label_id=${commonLabel}&phone_number=${phone}`,
  }
  const position = `${lastMessageAt.toISOString()}|${conversationId}`
  const conversations = {
    newest: '',
    'far down': `cursor=${cursorAt(project, listConversations, position, params)}`,
    open: 'status=open',
    pending: 'status=pending',
    'of a contact': `contact_id=${contactId}`,
    'changed lately': `updated_since=${since(0.3)}`,
    'changed ever': `updated_since=${since(365)}`,
    'pending, changed ever': `status=pending&updated_since=${since(365)}`,
  }
  const pages = (list: string, queries: Record<string, string>) =>
    Object.entries(queries).map(([name, query]) => ({
      name: `${list}: ${name}`,
      path: `/v1/${phoneNumberId}/${list}?limit=25&${query}`,
    }))
  return [...pages('contacts', contacts), ...pages('conversations', conversations)]
}
