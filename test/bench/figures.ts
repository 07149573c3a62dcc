/** A row of the table: what is measured, and what it must reach (`gate`) and should reach (`aim`). */
export interface FigureKind {
  title: string
  unit: 'times' | 'ms' | 's' | 'MiB' | 'µs' | '/s' | 'lists'
  /** Which side of gate and aim is the good one. */
  better: 'more' | 'less'
  gate?: number
  aim?: number
}

/** Every row, in the order of the table. Those without a gate are there to explain the others. */
export const figureKinds = {
  me: { title: 'GET /me against fastify hello, c=64', unit: 'times', better: 'more', gate: 0.7, aim: 0.9 },
  send64: { title: 'send against the monolith, c=64', unit: 'times', better: 'more', gate: 0.8, aim: 1.2 },
  send256: { title: 'send against the monolith, c=256', unit: 'times', better: 'more', gate: 1.2, aim: 1.8 },
  send1: { title: 'send against the monolith, c=1, p50', unit: 'times', better: 'less', gate: 4, aim: 2.5 },
  sendKeyed: { title: 'send with an Idempotency-Key, c=64', unit: 'times', better: 'more' },
  sendCpu: { title: 'CPU of a send against the monolith’s, c=64', unit: 'times', better: 'less', gate: 1.3, aim: 0.8 },
  sendCpuWhole: { title: 'CPU of a send until it is at the platform', unit: 'times', better: 'less' },
  least64: { title: 'the least that keeps the promise of a send, c=64', unit: 'times', better: 'more' },
  least256: { title: '  the same, c=256', unit: 'times', better: 'more' },
  least1: { title: '  the same, c=1, p50', unit: 'times', better: 'less' },
  leastCpu: { title: '  its CPU against the monolith’s, c=64', unit: 'times', better: 'less' },
  list: {
    title: 'list of 25 messages against the same SELECT, c=64',
    unit: 'times',
    better: 'more',
    gate: 0.6,
    aim: 0.85,
  },
  listDepth: { title: 'list p95 at 1,000,000 rows against 10,000', unit: 'times', better: 'less', gate: 1.5, aim: 1.1 },
  lists: {
    title: 'worst list p95, many contacts and conversations / few',
    unit: 'times',
    better: 'less',
    gate: 1.5,
    aim: 1.1,
  },
  listScans: { title: '  of them read a whole table', unit: 'lists', better: 'less', gate: 0, aim: 0 },
  callbacks: {
    title: 'upstream callback against the monolith, c=64',
    unit: 'times',
    better: 'more',
    gate: 1,
    aim: 1.5,
  },
  callbacksAccepted: { title: '  the same, what follows from it waiting', unit: 'times', better: 'more' },
  upstreamP50: { title: 'send asked → at the upstream, 200/s, p50', unit: 'ms', better: 'less', gate: 15, aim: 5 },
  upstreamP99: { title: 'send asked → at the upstream, 200/s, p99', unit: 'ms', better: 'less', gate: 100, aim: 30 },
  eventP50: { title: 'event → at the subscriber, 200/s, p50', unit: 'ms', better: 'less', gate: 30, aim: 10 },
  eventP99: { title: 'event → at the subscriber, 200/s, p99', unit: 'ms', better: 'less', gate: 150, aim: 50 },
  fanOutLimit: { title: 'fan-out against undici + HMAC', unit: 'times', better: 'more', gate: 0.18, aim: 0.3 },
  fanOutBullmq: { title: 'fan-out against bullmq + attempt row', unit: 'times', better: 'more', gate: 2, aim: 3 },
  fanOutPgBoss: { title: 'fan-out against pg-boss + attempt row', unit: 'times', better: 'more' },
  fanOutGraphile: { title: 'fan-out against graphile-worker + attempt row', unit: 'times', better: 'more' },
  fanOutLeast: {
    title: 'the least that keeps the promise of a delivery, against undici + HMAC',
    unit: 'times',
    better: 'more',
  },
  fanOutLeastBullmq: { title: '  the same against bullmq + attempt row', unit: 'times', better: 'more' },
  hanging: {
    title: 'healthy p95, 30 % of endpoints hanging / none',
    unit: 'times',
    better: 'less',
    gate: 1.1,
    aim: 1.02,
  },
  throttled: {
    title: 'healthy p95 to the upstream, one number throttled / none',
    unit: 'times',
    better: 'less',
    gate: 1.1,
    aim: 1.02,
  },
  retention: {
    title: 'p95 of a send, old messages being deleted / none',
    unit: 'times',
    better: 'less',
    gate: 1.1,
    aim: 1.02,
  },
  deliveryLists: { title: 'worst list of many deliveries, p95', unit: 'ms', better: 'less', gate: 50, aim: 20 },
  deliveryListsDepth: {
    title: 'worst list p95, many deliveries / few',
    unit: 'times',
    better: 'less',
    gate: 1.5,
    aim: 1.1,
  },
  deliveryScans: { title: '  of them read a whole table', unit: 'lists', better: 'less', gate: 0, aim: 0 },
  backlogBeside: {
    title: 'event → at the subscriber, 200/s, a backlog draining, p95',
    unit: 'ms',
    better: 'less',
    gate: 150,
    aim: 50,
  },
  backlogDrain: { title: '  of the backlog is delivered', unit: '/s', better: 'more' },
  catchUp: {
    title: 'events that a subscriber gets for each that comes, catching up',
    unit: 'times',
    better: 'more',
    gate: 1.1,
    aim: 1.3,
  },
  memoryAtRest: { title: 'memory of the five services at rest', unit: 'MiB', better: 'less', gate: 500, aim: 350 },
  memoryLoaded: {
    title: 'memory of the five services, most under load',
    unit: 'MiB',
    better: 'less',
    gate: 900,
    aim: 600,
  },
  start: { title: 'npm start, warm', unit: 's', better: 'less', gate: 10, aim: 4 },
} as const satisfies Record<string, FigureKind>

export type FigureName = keyof typeof figureKinds

/** A measured row. */
export interface Figure {
  name: FigureName
  /** A value of each round; their median is the figure. */
  rounds: number[]
  /** What the value was made of, such as `8.1 k/s : 10.3 k/s`. */
  from: string
}
