import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import { z } from 'zod'
import { connections } from './delivery.ts'
import { answerAsPeer } from './queue-peer.ts'

const payload = z.object({ eventId: z.string(), body: z.string() })

answerAsPeer(async ({ postgresUrl }, attempt) => {
  const runner = await run({
    // Tuned as its documentation advises for many small jobs.
    preset: {
      worker: {
        connectionString: postgresUrl,
        concurrentJobs: connections,
        maxPoolSize: 10,
        localQueue: { size: 2 * connections },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
    logger: new Logger(() => () => {}),
    taskList: { deliver: (job) => attempt(payload.parse(job)) },
  })
  const utils = await makeWorkerUtils({ connectionString: postgresUrl })
  return {
    add: (deliveries) => utils.addJobs(deliveries.map((delivery) => ({ identifier: 'deliver', payload: delivery }))),
    close: () => Promise.all([runner.stop(), utils.release()]),
  }
})
