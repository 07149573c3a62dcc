import { Pool } from 'undici'
import { answerParent } from '../child.ts'
import { connections, type Delivery, deliveryOf, headersOf } from './delivery.ts'

interface Settings {
  receiverUrl: string
  seconds: number
  prefix: string
}

/** As many signed POSTs as one core can make: no queue, no record, nothing tried again. */
async function run({ receiverUrl, seconds, prefix }: Settings) {
  const pool = new Pool(receiverUrl, { connections })
  const startedAt = performance.now()
  const endsAt = startedAt + seconds * 1000
  let done = 0
  let begun = 0
  const post = async () => {
    while (performance.now() < endsAt) {
      await dispatch(pool, deliveryOf(prefix, begun++))
      done++
    }
  }
  await Promise.all(Array.from({ length: connections }, post))
  const perSecond = done / ((performance.now() - startedAt) / 1000)
  await pool.close()
  return { perSecond }
}

const dispatch = (pool: Pool, delivery: Delivery) =>
  new Promise<void>((resolve, reject) => {
    pool.dispatch(
      { method: 'POST', path: '/', headers: headersOf(delivery), body: delivery.body },
      {
        onRequestStart() {},
        onResponseStart: (_controller, status) => {
          if (status !== 200) reject(new Error(`the receiver answers ${status}`))
        },
        onResponseData() {},
        onResponseEnd: () => resolve(),
        onResponseError: (_controller, err) => reject(err),
      },
    )
  })

const commands = { run }
export type DeliveryLimit = typeof commands
answerParent(commands)
