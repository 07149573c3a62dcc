import { streamName } from '@app/shared/events/stream.ts'
import { allRoots } from '../burst.ts'
import { cpuBetween, cpuMsOf } from '../processes.ts'
import { drain } from '../project/backlog.ts'
import type { Project } from '../project/project.ts'

/** What so many operations cost, until nothing was left to do. */
export interface Cost {
  operations: number
  /** Milliseconds of CPU by process. */
  cpuMs: Record<string, number>
  /** What has grown. */
  bytes: Bytes
}

export interface Bytes {
  /** Tables and their indexes, as they lie on the disk. */
  tables: number
  /** What Postgres writes before that, and a replica reads. */
  wal: number
  /** Events in NATS, in one copy. */
  stream: number
}

/** What the work costs with all that follows from it; the work answers how many operations it was. */
export async function costOf(project: Project, work: () => Promise<number>): Promise<Cost> {
  await drain(project)
  const [bytesBefore, cpuBefore] = [await readBytes(project), cpuMsOf(allRoots(project))]
  const operations = await work()
  await drain(project)
  const cpuMs = cpuBetween(cpuBefore, cpuMsOf(allRoots(project)))
  const bytes = await readBytes(project)
  return {
    operations,
    cpuMs,
    bytes: {
      tables: bytes.tables - bytesBefore.tables,
      wal: bytes.wal - bytesBefore.wal,
      stream: bytes.stream - bytesBefore.stream,
    },
  }
}

async function readBytes(project: Project): Promise<Bytes> {
  const [row] = await project.sql()<{ tables: number; wal: number }[]>`
    select sum(pg_total_relation_size(c.oid))::float8 as tables, (pg_current_wal_lsn() - '0/0')::float8 as wal
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and n.nspname in ('messaging', 'directory', 'platform', 'webhooks', 'idempotency')
  `
  if (!row) throw new Error('the size of the tables cannot be read')
  const stream = await (await project.nc().jetstreamManager()).streams.info(streamName)
  return { ...row, stream: stream.state.bytes }
}

export function addCosts(costs: Cost[]): Cost {
  const sum = (of: (cost: Cost) => number) => costs.reduce((all, cost) => all + of(cost), 0)
  const names = new Set(costs.flatMap(({ cpuMs }) => Object.keys(cpuMs)))
  return {
    operations: sum(({ operations }) => operations),
    cpuMs: Object.fromEntries(Array.from(names, (name) => [name, sum(({ cpuMs }) => cpuMs[name] ?? 0)])),
    bytes: {
      tables: sum(({ bytes }) => bytes.tables),
      wal: sum(({ bytes }) => bytes.wal),
      stream: sum(({ bytes }) => bytes.stream),
    },
  }
}
