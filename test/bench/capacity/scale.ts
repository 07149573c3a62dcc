import type { Bytes } from './cost.ts'
import type { Kind } from './page.ts'

/** What one operation costs. */
export interface OfOne {
  micros: Record<string, number>
  bytes: Bytes
}

/** A message all told: accepted, at the platform, three statuses back, each told to one subscriber, as `message.sent` is. */
const followUps = { callback: 3, delivery: 4 }
const rates = [1_000, 10_000, 100_000]
/** How busy a core may be, so that bursts find room. */
const busy = 0.7

const row = (cells: string[]) => `| ${cells.join(' | ')} |`
const head = (title: string) => [
  row([title, ...rates.map((rate) => `${rate.toLocaleString('en')}/s`)]),
  `|---|${'---:|'.repeat(rates.length)}`,
]

/** What the costs come to at rates that nobody has measured: every number is a cost times a rate. */
export function scaleTables(ofOne: Record<Kind, OfOne>): string[] {
  return [wholeTable(messageOf(ofOne)), aloneTable(ofOne)]
}

function messageOf({ send, callback, delivery }: Record<Kind, OfOne>): OfOne {
  const sum = (of: (one: OfOne) => number) =>
    of(send) + followUps.callback * of(callback) + followUps.delivery * of(delivery)
  const micros = Object.keys(send.micros).map((name) => [name, sum((one) => one.micros[name] ?? 0)])
  return {
    micros: Object.fromEntries(micros) as Record<string, number>,
    bytes: {
      tables: sum(({ bytes }) => bytes.tables),
      wal: sum(({ bytes }) => bytes.wal),
      stream: sum(({ bytes }) => bytes.stream),
    },
  }
}

const coresAt = (micros: number, rate: number) => (micros * rate) / 1e6 / busy
const shown = (value: number) => value.toLocaleString('en', { maximumSignificantDigits: 2 })

function wholeTable({ micros, bytes }: OfOne) {
  const all = Object.values(micros).reduce((sum, one) => sum + one, 0)
  const line = (title: string, at: (rate: number) => number) => row([title, ...rates.map((rate) => shown(at(rate)))])
  return [
    ...head('messages, all told'),
    ...Object.entries(micros).map(([name, one]) => line(`${name}, cores`, (rate) => coresAt(one, rate))),
    line('**all cores**', (rate) => coresAt(all, rate)),
    line('write-ahead log, MB/s', (rate) => (bytes.wal * rate) / 1e6),
    line('event stream, MB/s in each copy', (rate) => (bytes.stream * rate) / 1e6),
    line('tables and indexes, GB a day', (rate) => (bytes.tables * rate * 86_400) / 1e9),
  ].join('\n')
}

/** By kind, the services and the servers apart: instances are added to the first, the second are scaled otherwise. */
function aloneTable(ofOne: Record<Kind, OfOne>) {
  const titles: Record<Kind, string> = {
    send: 'sends',
    callback: 'callbacks',
    list: 'lists of 25',
    me: 'GET /me',
    delivery: 'deliveries',
  }
  const lines = (Object.keys(titles) as Kind[]).map((kind) => {
    const { postgres = 0, nats = 0, redis = 0, ...services } = ofOne[kind].micros
    const ours = Object.values(services).reduce((sum, one) => sum + one, 0)
    const cells = rates.map(
      (rate) =>
        `${shown(coresAt(ours, rate))} + ${shown(coresAt(postgres, rate))} + ${shown(coresAt(nats + redis, rate))}`,
    )
    return row([`${titles[kind]} alone`, ...cells])
  })
  return [...head('cores: services + Postgres + NATS and Redis'), ...lines].join('\n')
}
