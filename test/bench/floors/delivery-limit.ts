import { Pool } from 'undici'
import { answerParent } from '../child.ts'
import { connections, deliveryOf, dispatch } from './delivery.ts'

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
      const status = await dispatch(pool, deliveryOf(prefix, begun++))
      if (status !== 200) throw new Error(`the receiver answers ${status}`)
      done++
    }
  }
  await Promise.all(Array.from({ length: connections }, post))
  const perSecond = done / ((performance.now() - startedAt) / 1000)
  await pool.close()
  return { perSecond }
}

const commands = { run }
export type DeliveryLimit = typeof commands
answerParent(commands)
