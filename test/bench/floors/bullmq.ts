import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { connections, type Delivery } from './delivery.ts'
import { answerAsPeer } from './queue-peer.ts'

answerAsPeer(async ({ redisUrl }, attempt) => {
  const open = () => new Redis(redisUrl, { maxRetriesPerRequest: null })
  const queue = new Queue<Delivery>('deliveries', {
    connection: open(),
    defaultJobOptions: { removeOnComplete: true, attempts: 12, backoff: { type: 'exponential', delay: 5_000 } },
  })
  const worker = new Worker<Delivery>('deliveries', ({ data }) => attempt(data), {
    connection: open(),
    concurrency: connections,
  })
  return {
    add: (deliveries) => queue.addBulk(deliveries.map((data) => ({ name: 'deliver', data }))),
    close: () => Promise.all([worker.close(), queue.close()]),
  }
})
