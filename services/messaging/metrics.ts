import { mostCounted, readingOf, type Counted } from '@app/shared/metrics/database-readings.ts'
import { type Gauges, readings } from '@app/shared/metrics/readings.ts'
import { counts, durations } from '@app/shared/metrics/registered.ts'
import type { Probes } from '@app/shared/service/probes.ts'
import type { DataService } from '@app/shared/service/service.ts'

export type Meters = ReturnType<typeof createMeters>

/** What messaging counts while it works. */
export const createMeters = ({ probes: { metrics } }: Pick<DataService, 'probes'>) => ({
  ...sendMeters(metrics),
  ...callbackMeters(metrics),
  ...mediaMeters(metrics),
})

function sendMeters(metrics: Probes['metrics']) {
  return {
    accepted: counts(metrics, {
      name: 'svc_sends_accepted_total',
      help: 'Sends that were accepted, by type of message.',
      labelNames: ['type'],
    }),
    calls: durations(metrics, {
      name: 'svc_upstream_send_seconds',
      help: 'Calls that send a message to the platform, by outcome: accepted, refused, unreachable or unknown.',
      labelNames: ['outcome'],
    }),
    refusals: counts(metrics, {
      name: 'svc_upstream_refusals_total',
      help: "Sends that the platform refused, by the code that we make of its own (a message's error.code).",
      labelNames: ['code'],
      from: [['upstream_auth_failed'], ['account_restricted'], ['billing_problem']],
    }),
    ended: counts(metrics, {
      name: 'svc_sends_ended_total',
      help: 'Sends that ended, by outcome (sent or failed) and the code of the failure.',
      labelNames: ['outcome', 'code'],
      from: [
        ['sent', ''],
        ['failed', 'delivery_unknown'],
      ],
    }),
    parked: counts(metrics, {
      name: 'svc_sends_parked_total',
      help: 'Sends whose outcome is unknown and that wait a minute for a callback that tells it.',
      from: [[]],
    }),
    delay: durations(metrics, {
      name: 'svc_send_delay_seconds',
      help: "From a send's acceptance to the platform's, its waits (pace, retries) included.",
    }),
  }
}

function callbackMeters(metrics: Probes['metrics']) {
  return {
    statuses: counts(metrics, {
      name: 'svc_statuses_total',
      help: 'Statuses of known messages that callbacks brought, repetitions included, by word.',
      labelNames: ['status'],
    }),
    callbacks: counts(metrics, { name: 'svc_callbacks_total', help: 'Callbacks of the platform that were kept.' }),
    items: counts(metrics, {
      name: 'svc_callback_items_total',
      help: 'Parts of callbacks that were worked on, by kind and outcome: handled; parked (its message is not known yet); failed (comes again); given_up after a day; unfit; away (something of ours did not answer).',
      labelNames: ['kind', 'outcome'],
      from: ['message', 'status', 'change'].flatMap((kind) =>
        ['failed', 'given_up', 'unfit'].map((outcome) => [kind, outcome]),
      ),
    }),
    itemDelay: durations(metrics, {
      name: 'svc_callback_delay_seconds',
      help: 'From a callback to the end of the work on a part of it, by kind.',
      labelNames: ['kind'],
    }),
  }
}

function mediaMeters(metrics: Probes['metrics']) {
  return {
    copies: counts(metrics, {
      name: 'svc_media_copies_total',
      help: "Tries to copy a customer's file from the platform, by outcome: copied, again or failed.",
      labelNames: ['outcome'],
    }),
    uploads: counts(metrics, {
      name: 'svc_media_uploads_total',
      help: 'Files that were brought to the platform, by outcome.',
      labelNames: ['outcome'],
    }),
  }
}

const gauges: Gauges = {
  svc_sends_open: { help: `Accepted sends without an outcome; counted up to ${mostCounted}.` },
  svc_sends_parked: { help: 'Open sends whose outcome is unknown.' },
  svc_callback_items_waiting: { help: `Parts of callbacks that wait; counted up to ${mostCounted}.` },
  svc_media_copies_waiting: { help: `Files of customers that are still to be copied; counted up to ${mostCounted}.` },
  svc_callbacks_unhandled: {
    help: 'Changes of today of which nothing was made, by reason; `select * from messaging.unhandled_changes` names the fields.',
    labelNames: ['reason'],
  },
}

/** What stands in messaging's tables: small ones, and each count bounded. */
export function readStanding({ sql, probes }: Pick<DataService, 'sql' | 'probes'>): void {
  readings(probes.metrics, 'messaging', gauges, async () => {
    const [row] = await sql<{ open: number; parked: number; items: number; copies: number; unhandled: Counted[] }[]>`
      select
        (select count(*)::int from (select from sends limit ${mostCounted}) s) as open,
        (select count(*)::int from (select from sends where parked_until is not null limit ${mostCounted}) s) as parked,
        (select count(*)::int from (select from callback_items limit ${mostCounted}) i) as items,
        (select count(*)::int from (select from media_copies limit ${mostCounted}) c) as copies,
        (select coalesce(json_agg(u), '[]') from (
          select reason as label, sum(count) as count from unhandled_changes where day = current_date group by 1
        ) u) as unhandled
    `
    if (!row) return []
    return [
      { gauge: 'svc_sends_open', value: row.open },
      { gauge: 'svc_sends_parked', value: row.parked },
      { gauge: 'svc_callback_items_waiting', value: row.items },
      { gauge: 'svc_media_copies_waiting', value: row.copies },
      ...row.unhandled.map(readingOf('svc_callbacks_unhandled', 'reason')),
    ]
  })
}
