import type { Bench } from '../bench.ts'
import { startChild } from '../child.ts'
import type { LeastDelivery } from '../floors/least-delivery.ts'
import { cpuBetween, cpuMsOf } from '../processes.ts'
import { until } from '../project/until.ts'
import { floorRoots } from './floor-roots.ts'

const recordTimeoutMs = 120_000

/** The least that keeps the promise of a delivery, with who gives it events, each in a process of its own. */
export async function openLeast({ floorServers }: Bench, receiverUrl: string) {
  const servers = await floorServers()
  const { postgresUrl, natsUrl } = servers
  const worker = startChild<LeastDelivery>('floors/least-delivery.ts')
  const publisher = startChild<LeastDelivery>('floors/least-delivery.ts')
  await worker.ask('start', { receiverUrl, postgresUrl, natsUrl })
  const roots = { least: [worker.pid], ...floorRoots(servers, ['postgres', 'nats']), publisher: [publisher.pid] }
  return {
    fanOut: (count: number, prefix: string) => publisher.ask('burst', { natsUrl, count, prefix }),
    /** Milliseconds by process, with what is left to do when the last has arrived. */
    async cpuOf<T>(act: () => Promise<T>) {
      const before = cpuMsOf(roots)
      const result = await act()
      await until('all is recorded', async () => (await worker.ask('open', undefined)) === 0, recordTimeoutMs)
      return { result, cpuMs: cpuBetween(before, cpuMsOf(roots)) }
    },
    stop: () => Promise.all([worker.stop(), publisher.stop()]),
  }
}
