import { PgBoss } from 'pg-boss'
import { connections, type Delivery } from './delivery.ts'
import { answerAsPeer } from './queue-peer.ts'

const name = 'deliveries'

answerAsPeer(async ({ postgresUrl }, attempt) => {
  const boss = new PgBoss({ connectionString: postgresUrl, max: 10, supervise: false })
  boss.on('error', (err) => console.error(err))
  await boss.start()
  await boss.createQueue(name)
  // Two batches at a time, so that the connections stay busy while one is fetched and completed; full batches are
  // followed by the next at once.
  const options = {
    batchSize: connections,
    localConcurrency: 2,
    burstWhenBatchFull: true,
    pollingIntervalSeconds: 0.5,
  }
  await boss.work<Delivery>(name, options, async (jobs) => {
    await Promise.all(jobs.map(({ data }) => attempt(data)))
  })
  return {
    add: (deliveries) =>
      boss.insert(
        name,
        deliveries.map((data) => ({ data })),
      ),
    close: () => boss.stop(),
  }
})
