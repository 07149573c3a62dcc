import type { DataService } from '../service/service.ts'
import { askAgainMs, managerOf } from './provision.ts'
import { streamName } from './stream.ts'

/** How far a consumer is. */
export interface Place {
  name: string
  /** All of the stream up to there was acked. */
  ackedSeq: number
  /** Nothing in the stream waits for it, and nothing is in its hands. */
  isIdle: boolean
}

/** How far all consumers are, and then the stream: when it was made, and its newest place. */
export async function lookAtPlaces({ eventBus }: Pick<DataService, 'eventBus'>) {
  const jsm = await managerOf(eventBus.nc, askAgainMs)
  const infos = await jsm.consumers.list(streamName).next()
  const { created, state } = await jsm.streams.info(streamName)
  const places = infos.map(({ name, ack_floor: floor, num_pending: pending, num_ack_pending: inHand }): Place => ({
    name,
    ackedSeq: floor.stream_seq,
    isIdle: pending + inHand === 0,
  }))
  return { created, lastSeq: state.last_seq, places }
}
