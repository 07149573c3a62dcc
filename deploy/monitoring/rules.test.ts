import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { findPrograms } from '../servers/find-program.ts'
import { repository, serviceNames } from '../stack/options.ts'
import { alerts, dashboard } from '../testing/monitoring.ts'

// What Prometheus itself makes of the rules. Its package has `promtool`; without it these tests are skipped.
const [promtool] = findPrograms(['promtool'])
const ofPrometheus = describe.skipIf(promtool === undefined)

const folder = mkdtempSync(join(tmpdir(), 'rules-'))
afterAll(() => rmSync(folder, { recursive: true }))

const inFolder = (file: string) => join(repository, 'deploy/monitoring', file)

/** What promtool says of a file that it finds good; else the error has its words. */
const run = (...args: string[]) => execFileSync(promtool ?? '', args, { encoding: 'utf8' })

/** JSON, which Prometheus reads as it reads YAML. */
function written(name: string, content: unknown) {
  const file = join(folder, name)
  writeFileSync(file, JSON.stringify(content))
  return file
}

ofPrometheus('promtool', () => {
  test('finds no fault in the rules and in how the services are found', () => {
    expect(run('check', 'rules', inFolder('rules.yaml'))).toContain(`${alerts.length} rules found`)
    expect(run('check', 'config', inFolder('scrape.yaml'))).toContain('is valid')
  })

  test('understands every expression of the dashboard', () => {
    const exprs = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
    const rules = exprs.map((expr, n) => ({ record: `panel:${n}`, expr: expr.replaceAll('$__rate_interval', '5m') }))
    const file = written('dashboard.json', { groups: [{ name: 'dashboard', rules }] })
    expect(run('check', 'rules', file)).toContain(`${exprs.length} rules found`)
  })
})

/** Values of each series, one for every 15 s: `0+2x240` grows by two an hour long. */
type Series = Record<string, string>

interface Situation {
  series: Series
  labels: Record<string, string>
  told: string
}

const request = (labels: string) => `svc_http_request_seconds_${labels}`
const one = { service: 'messaging', instance: 'messaging-1' }
const always = (value: number) => `${value}x240`
/** Counted once, after half an hour. */
const once = (count: number) => `0x120 ${count}x120`

const situations: Record<string, Situation> = {
  NoTargets: {
    series: {},
    labels: { job: 'messaging-service' },
    told: 'Prometheus has no targets of the job messaging-service: all other alerts are blind',
  },
  ServiceMissing: {
    series: Object.fromEntries(serviceNames.slice(1).map((name) => [`svc_ready{service="${name}"}`, always(1)])),
    labels: { service: 'gateway' },
    told: 'Prometheus gets metrics from no instance of gateway',
  },
  ServiceDown: {
    series: { 'up{job="messaging-service",instance="messaging-1"}': always(0) },
    labels: { job: 'messaging-service', instance: 'messaging-1' },
    told: 'messaging-1 does not answer Prometheus',
  },
  ServiceNotReady: {
    series: { 'svc_ready{service="messaging",instance="messaging-1"}': always(0) },
    labels: one,
    told: 'messaging (messaging-1) runs but is not ready',
  },
  HttpErrors: {
    series: { [request('count{status="200"}')]: '0+49x240', [request('count{status="503"}')]: '0+1x240' },
    labels: {},
    told: '2% of the requests get a 5xx',
  },
  HttpSlow: {
    series: {
      [request('bucket{route="/v1/me",le="0.5"}')]: always(0),
      [request('bucket{route="/v1/me",le="1"}')]: '0+15x240',
      [request('bucket{route="/v1/me",le="+Inf"}')]: '0+15x240',
    },
    labels: {},
    told: '5 % of the requests take more than 975ms',
  },
  QuestionsUnanswered: {
    series: { 'svc_rpc_asked_seconds_count{subject="rpc.messaging.send-message",outcome="timeout"}': '0+3x240' },
    labels: { subject: 'rpc.messaging.send-message' },
    told: 'questions to rpc.messaging.send-message get no answer',
  },
  OutboxStuck: {
    series: { 'svc_outbox_oldest_seconds{service="messaging"}': always(90) },
    labels: { service: 'messaging' },
    told: 'events of messaging have waited 1m 30s to be published to JetStream',
  },
  StreamCopyBehind: {
    series: { svc_stream_copies_behind: always(2) },
    labels: {},
    told: '2 nats-servers do not have the newest events',
  },
  EventsRefused: {
    series: { 'svc_outbox_events_total{service="messaging",outcome="refused"}': once(1) },
    labels: { service: 'messaging' },
    told: 'events of messaging cannot be published and were set aside',
  },
  EventsDead: {
    series: { 'svc_dead_events{service="directory",consumer="directory-teams"}': always(3) },
    labels: { service: 'directory', consumer: 'directory-teams' },
    told: '3 events failed eight times at directory-teams',
  },
  ConsumerBehind: {
    series: {
      'svc_consumer_waiting_events{consumer="webhooks-fan-out"}': always(2000),
      'svc_consumer_unacked_events{consumer="webhooks-fan-out"}': always(4000),
    },
    labels: { consumer: 'webhooks-fan-out' },
    told: 'webhooks-fan-out is 6000 events behind',
  },
  EventsMissed: {
    series: { 'svc_consumer_missed_events_total{consumer="webhooks-fan-out"}': always(61) },
    labels: { consumer: 'webhooks-fan-out' },
    told: '61 events left the stream before webhooks-fan-out had handled them',
  },
  EventsUnhandled: {
    series: { 'svc_outbox_unhandled_events_total{service="messaging"}': once(7) },
    labels: { service: 'messaging' },
    told: '7 events of messaging were published and never handled, and were published again',
  },
  LanesStuck: {
    series: {
      'svc_mailbox_oldest_due_seconds{service="messaging",lanes="send_lanes"}': always(90),
      'svc_mailbox_settled_items_total{service="messaging",lanes="send_lanes"}': always(5),
    },
    labels: { service: 'messaging', lanes: 'send_lanes' },
    told: 'work of send_lanes has been due for 1m 30s and none of it is done',
  },
  LanesWait: {
    series: {
      'svc_mailbox_oldest_due_seconds{service="messaging",lanes="callback_lanes"}': always(660),
      'svc_mailbox_settled_items_total{service="messaging",lanes="callback_lanes"}': '0+5x240',
    },
    labels: { service: 'messaging', lanes: 'callback_lanes' },
    told: 'work of callback_lanes has been due for 11m 0s',
  },
  LanesForgotten: {
    series: { 'svc_mailbox_rescued_lanes_total{service="messaging",lanes="send_lanes"}': once(1) },
    labels: { service: 'messaging', lanes: 'send_lanes' },
    told: 'send_lanes slept although they had open work, and were woken',
  },
  SendsUnknown: {
    series: { 'svc_sends_ended_total{outcome="failed",code="delivery_unknown"}': once(25) },
    labels: {},
    told: '25 messages failed because nobody knows whether the platform accepted them',
  },
  SendsParked: {
    series: { svc_sends_parked: always(25) },
    labels: {},
    told: '25 sends without an answer wait for a callback with their outcome',
  },
  PlatformUnreachable: {
    series: {
      'svc_upstream_send_seconds_count{outcome="accepted"}': '0+3x240',
      'svc_upstream_send_seconds_count{outcome="unreachable"}': '0+1x240',
    },
    labels: {},
    told: '25% of the calls to the platform get no answer from it',
  },
  PlatformRefusesAccount: {
    series: { 'svc_upstream_refusals_total{code="upstream_auth_failed"}': once(1) },
    labels: { code: 'upstream_auth_failed' },
    told: 'the platform refuses sends of an account: upstream_auth_failed',
  },
  CallbacksMissing: {
    series: { 'svc_sends_ended_total{outcome="sent",code=""}': '0+1x240', svc_callbacks_total: always(9) },
    labels: {},
    told: 'messages are sent, but no callback of the platform has come for 15 minutes',
  },
  CallbackItemsFail: {
    series: { 'svc_callback_items_total{kind="message",outcome="unfit"}': once(1) },
    labels: { kind: 'message', outcome: 'unfit' },
    told: 'parts of callbacks (message) were not processed: unfit',
  },
  CallbacksUnhandled: {
    series: { 'svc_callbacks_unhandled{reason="unknown_number"}': always(110) },
    labels: { reason: 'unknown_number' },
    told: '110 changes of today had no effect: unknown_number',
  },
  MediaCopiesWait: {
    series: { svc_media_copies_waiting: always(520) },
    labels: {},
    told: '520 files from customers are not copied to the store yet',
  },
  WebhooksFail: {
    series: {
      'svc_webhook_attempt_seconds_count{outcome="succeeded"}': '0+1x240',
      'svc_webhook_attempt_seconds_count{outcome="failed"}': '0+3x240',
    },
    labels: {},
    told: '75% of the delivery attempts fail',
  },
  WebhookDeadLetters: {
    series: { 'svc_webhook_dead_letters_total{reason="gone"}': once(10) },
    labels: { reason: 'gone' },
    told: '10 deliveries were given up: gone',
  },
  FanOutBacklog: {
    series: { svc_webhook_backlog_oldest_seconds: always(1200) },
    labels: {},
    told: 'events of an organization have waited 20m 0s for their fan-out',
  },
  DeliveriesHeld: {
    series: { svc_webhook_held_deliveries: always(5001) },
    labels: {},
    told: '5001 deliveries wait at paused subscriptions',
  },
  DeliveriesWait: {
    series: { svc_webhook_waiting_deliveries: always(5001) },
    labels: {},
    told: '5001 deliveries wait at subscriptions that are not paused',
  },
  LimiterAlone: {
    series: { 'svc_limiter_alone{instance="gateway-1"}': always(1) },
    labels: { instance: 'gateway-1' },
    told: 'Redis does not answer gateway-1, which enforces rate limits on its own',
  },
  ApiLogLosesCalls: {
    series: { svc_api_log_dropped_total: once(12) },
    labels: {},
    told: '12 calls are missing from the API log',
  },
  EventLoopLate: {
    series: {
      'nodejs_eventloop_lag_p99_seconds{job="messaging-service",service="messaging",instance="messaging-1"}':
        always(0.3),
    },
    labels: { job: 'messaging-service', ...one },
    told: 'messaging (messaging-1) has more work than one core can do',
  },
  MemoryHigh: {
    series: {
      'process_resident_memory_bytes{job="messaging-service",service="messaging",instance="messaging-1"}': always(
        700 * 1024 ** 2,
      ),
    },
    labels: { job: 'messaging-service', ...one },
    told: 'messaging (messaging-1) holds 700MiB',
  },
  DatabaseSlow: {
    series: { 'svc_database_reading_seconds{service="messaging"}': always(0.75) },
    labels: { service: 'messaging' },
    told: 'messaging waits 750ms for a small query to Postgres',
  },
  TransactionHeld: {
    series: { 'svc_database_held_transactions{service="messaging"}': '0+1000x240' },
    labels: { service: 'messaging' },
    told: 'somebody holds a transaction in the Postgres of messaging open since 140000 others began',
  },
  ConnectionsShort: {
    series: {
      'svc_database_server_connections{service="messaging"}': always(180),
      'svc_database_server_connections_limit{service="messaging"}': always(200),
    },
    labels: { service: 'messaging' },
    told: '90% of the connections of the Postgres of messaging are taken',
  },
  ReadingsFail: {
    series: { 'svc_readings_failed_total{service="messaging",source="EVENTS"}': '0+1x240' },
    labels: { service: 'messaging', source: 'EVENTS' },
    told: 'messaging cannot read its gauges from EVENTS',
  },
  SecretsUnopenable: {
    series: { 'svc_sealed_secrets{service="messaging",table="senders",key="k1",state="missing"}': always(4) },
    labels: { service: 'messaging', table: 'senders', key: 'k1' },
    told: '4 secrets of messaging (senders) need the key k1, which SEAL_KEYS lacks',
  },
}

test('each alert has a situation here', () => {
  expect(Object.keys(situations)).toEqual(alerts.map(({ alert }) => alert))
})

/** A service that was restarted after ten minutes of a request each second: away for a scrape, seven of its requests get a 503. */
const restart: Series = {
  'up{job="messaging-service",instance="messaging-1"}': '1x40 0 1x200',
  ...Object.fromEntries(
    serviceNames.map((name) => [
      `svc_ready{service="${name}",instance="${name}-1"}`,
      name === 'messaging' ? '1x40 stale 0 1x200' : always(1),
    ]),
  ),
  [request('count{status="200"}')]: '0+15x40 600 605+15x200',
  [request('count{status="503"}')]: '0x40 4 7x200',
  [request('bucket{route="/v1/me",le="0.5"}')]: '0+15x240',
  [request('bucket{route="/v1/me",le="+Inf"}')]: '0+15x240',
  'svc_rpc_asked_seconds_count{subject="rpc.messaging.send-message",outcome="no_responders"}': '0x40 4 7x200',
  'svc_outbox_oldest_seconds{service="messaging"}': '0x40 stale 9 0x200',
  'svc_mailbox_oldest_due_seconds{service="messaging",lanes="send_lanes"}': '0x40 stale 9 0x200',
  'svc_mailbox_settled_items_total{service="messaging",lanes="send_lanes"}': '0+15x40 stale 4+15x200',
  'svc_sends_ended_total{outcome="sent",code=""}': '0+15x40 stale 0+15x200',
  svc_callbacks_total: '0+45x40 stale 0+45x200',
  'svc_upstream_send_seconds_count{outcome="accepted"}': '0+15x40 stale 2+15x200',
}

/** After ten minutes, nothing works for three. */
const outage: Series = {
  ...Object.fromEntries(serviceNames.map((name) => [`svc_ready{service="${name}"}`, always(1)])),
  'up{job="messaging-service",instance="messaging-1"}': always(1),
  [request('count{status="200"}')]: '0+150x40 6000x12 6150+150x188',
  [request('count{status="503"}')]: '0x40 150+150x11 1800x188',
  'svc_rpc_asked_seconds_count{subject="rpc.messaging.send-message",outcome="timeout"}': '0x40 150+150x11 1800x188',
  'svc_upstream_send_seconds_count{outcome="accepted"}': '0+150x40 6000x12 6150+150x188',
  'svc_upstream_send_seconds_count{outcome="unreachable"}': '0x40 150+150x11 1800x188',
}

/** After ten minutes, all attempts fail for ten, and are made again. */
const endpointsAway: Series = {
  ...Object.fromEntries(serviceNames.map((name) => [`svc_ready{service="${name}"}`, always(1)])),
  'up{job="messaging-service",instance="messaging-1"}': always(1),
  'svc_webhook_attempt_seconds_count{outcome="succeeded"}': '0+10x40 400x39 410+10x160',
  'svc_webhook_attempt_seconds_count{outcome="failed"}': '0x40 60+60x39 2400x160',
}

/** Nobody asks for anything: what is divided by the number of requests is no number. */
const rest: Series = {
  ...Object.fromEntries(serviceNames.map((name) => [`svc_ready{service="${name}"}`, always(1)])),
  'up{job="messaging-service",instance="messaging-1"}': always(1),
  [request('count{status="200"}')]: always(9),
  [request('count{status="503"}')]: always(1),
  [request('bucket{route="/v1/me",le="0.5"}')]: always(9),
  [request('bucket{route="/v1/me",le="+Inf"}')]: always(10),
  'svc_upstream_send_seconds_count{outcome="unreachable"}': always(1),
  'svc_webhook_attempt_seconds_count{outcome="failed"}': always(1),
  'svc_sends_ended_total{outcome="sent",code=""}': always(20),
  svc_callbacks_total: always(0),
}

interface Expected {
  eval_time: string
  alertname: string
  exp_alerts: unknown[]
}

/** One test of promtool's. */
const testOf = (series: Series, expected: Expected[]) => ({
  interval: '15s',
  input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
  alert_rule_test: expected,
})

/** Throws with what promtool found instead: each alert by its name. */
const evaluate = (name: string, tests: unknown[]) =>
  run('test', 'rules', written(name, { rule_files: [inFolder('rules.yaml')], evaluation_interval: '15s', tests }))

const minutes = Array.from({ length: 40 }, (_, n) => `${n + 1}m`)
const silence = alerts.flatMap(({ alert }) =>
  minutes.map((eval_time): Expected => ({ eval_time, alertname: alert, exp_alerts: [] })),
)

ofPrometheus('Prometheus', () => {
  test('fires each alert in its situation, and says what is the matter', () => {
    const told = alerts.map(({ alert, labels: { severity }, annotations }): Expected => {
      const { labels = {}, told: summary } = situations[alert] ?? {}
      const fired = { exp_labels: { ...labels, severity }, exp_annotations: { ...annotations, summary } }
      return { eval_time: '35m', alertname: alert, exp_alerts: [fired] }
    })
    const isBlind = ({ alertname }: Expected) => alertname === 'NoTargets'
    const all = Object.assign({}, ...Object.values(situations).map(({ series }) => series)) as Series
    const tests = [
      testOf(
        all,
        told.filter((one) => !isBlind(one)),
      ),
      testOf({}, told.filter(isBlind)),
    ]
    expect(evaluate('situations.json', tests)).toContain('SUCCESS')
  })

  test.each([
    ['while nobody asks for anything', rest],
    ['when a service is restarted under light traffic', restart],
    ['when a short outage is over', outage],
    ['when endpoints that failed for ten minutes are back', endpointsAway],
  ])('fires none %s', (_, series) => {
    expect(evaluate('silence.json', [testOf(series, silence)])).toContain('SUCCESS')
  })
})
