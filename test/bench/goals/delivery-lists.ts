import { listWebhookDeliveries } from '@app/shared/contracts/webhook-deliveries.ts'
import type { Bench } from '../bench.ts'
import { median } from '../median.ts'
import { cursorAt } from '../project/cursor-at.ts'
import {
  type FilledDeliveries,
  fillDeliveries,
  forgetOpenDeliveries,
  type Subscribers,
} from '../project/fill-deliveries.ts'
import type { Project } from '../project/project.ts'
import { subscribe } from '../project/subscriptions.ts'
import { dayMs } from '../project/ulid-sql.ts'
import { alternate, msText } from '../rounds.ts'
import { sizesOf } from '../sizes.ts'
import type { Result } from './goal.ts'
import { type Page, p95OfPages, pagesToLoad, readsOfPages, readsText, scanFigure } from './measure-lists.ts'

const subscribers = 5

/** There are many pages. */
const mostRounds = 2

/** Every list of deliveries, with each of its filters, in a table of many: the worst p95, and the worst against the same of few. */
export async function measureDeliveryLists(bench: Bench): Promise<Result> {
  const project = await bench.project()
  const { few, many } = sizesOf(bench.options)
  const made = await subscribePaused(project)
  const [rareId = '', ...subscriptionIds] = made.map(({ id }) => id)
  try {
    await bench.plans()
    const who = { rareId, subscriptionIds }
    const fewPages = pagesOf(project, who, await fillDeliveries(project, who, few))
    const ofFew = await p95sOf(bench, pagesToLoad(bench.options, fewPages))
    bench.say(`deliveries: writing ${many} deliveries …`)
    const pages = pagesOf(project, who, await fillDeliveries(project, who, many - few))
    const loaded = pagesToLoad(bench.options, pages)
    const ofMany = await p95sOf(bench, loaded)
    const reads = await readsOfPages(bench, pages, /as attempt_count/)
    const p95s = loaded
      .map(({ name }) => ({ name, p95: ofMany[name] ?? NaN, few: ofFew[name] ?? NaN }))
      .toSorted((a, b) => b.p95 - a.p95)
    const [worst] = p95s
    const [deepest] = p95s.toSorted((a, b) => b.p95 / b.few - a.p95 / a.few)
    if (!worst || !deepest) throw new Error('no pages')
    return {
      figures: [
        { name: 'deliveryLists', rounds: [worst.p95], from: worst.name },
        {
          name: 'deliveryListsDepth',
          rounds: [deepest.p95 / deepest.few],
          from: `${deepest.name}, ${msText(deepest.p95)} : ${msText(deepest.few)}`,
        },
        ...scanFigure('deliveryScans', reads),
      ],
      notes: [
        `lists of ${many} deliveries : of ${few}, p95`,
        ...p95s.map(
          ({ name, p95, few: fewP95 }) =>
            `${msText(p95).padStart(12)} : ${msText(fewP95).padEnd(9)}  ${name}${readsText(reads?.[name])}`,
        ),
      ],
      details: { p95s, reads },
    }
  } finally {
    await forgetOpenDeliveries(project)
    for (const subscription of made) await subscription.delete()
  }
}

/** Of each page the median over the rounds. */
async function p95sOf(bench: Bench, pages: Page[]): Promise<Record<string, number>> {
  const options = { ...bench.options, quick: true, rounds: Math.min(bench.options.rounds, mostRounds) }
  const { lists } = await alternate(options, { lists: (seconds) => p95OfPages(bench, pages, seconds) })
  return Object.fromEntries(pages.map(({ name }) => [name, median(lists.map((round) => round[name] ?? NaN))]))
}

/** Nobody is to be delivered to. */
async function subscribePaused(project: Project) {
  const made = []
  for (let n = 0; n <= subscribers; n++) {
    const subscription = await subscribe(project, { url: `http://127.0.0.1:9/${n}`, events: ['message.revoked'] })
    await subscription.pause()
    made.push(subscription)
  }
  return made
}

function pagesOf(project: Project, { rareId, subscriptionIds }: Subscribers, filled: FilledDeliveries): Page[] {
  const { rareType, deliveryId, eventId } = filled
  const [subscription] = subscriptionIds
  const moment = encodeURIComponent(new Date(Date.now() - 15 * dayMs).toISOString())
  const queries = {
    newest: '',
    'far down': `cursor=${cursorAt(project, listWebhookDeliveries, deliveryId)}`,
    pending: 'status=pending',
    succeeded: 'status=succeeded',
    failed: 'status=failed',
    dead: 'status=dead',
    'of a subscription': `subscription_id=${subscription}`,
    'of a subscription, succeeded': `subscription_id=${subscription}&status=succeeded`,
    'of a subscription, failed': `subscription_id=${subscription}&status=failed`,
    'of a rare subscription': `subscription_id=${rareId}`,
    'of a rare subscription, pending': `subscription_id=${rareId}&status=pending`,
    'of a rare subscription, failed': `subscription_id=${rareId}&status=failed`,
    'of a rare subscription, dead': `subscription_id=${rareId}&status=dead`,
    'of a type': 'event_type=message.sent',
    'of a rare type': `event_type=${rareType}`,
    'of a type, dead': 'event_type=message.sent&status=dead',
    'of a rare type, dead': `event_type=${rareType}&status=dead`,
    'of a rare type, failed': `event_type=${rareType}&status=failed`,
    'of a subscription and a type': `subscription_id=${subscription}&event_type=message.sent`,
    'of an event': `event_id=${eventId}`,
    'of an event, dead': `event_id=${eventId}&status=dead`,
    'of an event, failed': `event_id=${eventId}&status=failed`,
    'before a moment': `created_before=${moment}`,
    'after a moment': `created_after=${moment}`,
    'before a moment, dead': `created_before=${moment}&status=dead`,
  }
  return Object.entries(queries).map(([name, query]) => ({ name, path: `/v1/webhook_deliveries?limit=25&${query}` }))
}
