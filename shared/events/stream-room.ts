import type { ConsumerInfo, StreamInfo } from 'nats'
import { askAgainMs, isOurs, managerOf } from './provision.ts'
import type { DataService } from '../service/service.ts'
import { streamName } from './stream.ts'

/** The stream is looked at that often while events are published, and whenever so much of it was published since. */
const lookEveryMs = 5_000
const lookEveryShare = 0.02
/** Filled less, it drops nothing soon. */
const fullShare = 0.9
/** An event that nobody has handled and that stands in this oldest part of a full stream would be dropped soon. */
const oldestShare = 0.1

export interface StreamRoom {
  /** The consumer for whose sake nothing more may be published now, or null. */
  heldBy: () => Promise<string | null>
  /** Looks now, however long ago it was looked; answers whether anything was seen. */
  look: () => Promise<boolean>
  /** So many bytes were published. */
  filled: (bytes: number) => void
}

/**
 * A full stream drops its oldest events, handled or not. So nothing is published while a consumer has not handled what would
 * go next: events wait in Postgres, where there is room and somebody is told. Consumers of the stream that are not ours
 * count for nothing. `sawStream` is told when the stream was made, at each look.
 */
export function watchStreamRoom(
  { eventBus, log }: Pick<DataService, 'eventBus' | 'log'>,
  sawStream: (created: string) => void,
): StreamRoom {
  let lookedAt = -Infinity
  let [size, since] = [0, 0]
  let held: string | null = null
  /** Consumers whose oldest event is not known to be in the stream, by the place up to which they have handled all. */
  let doubtful = new Map<string, number>()

  async function look() {
    const jsm = await managerOf(eventBus.nc, askAgainMs)
    const stream = await jsm.streams.info(streamName)
    sawStream(stream.created)
    size = stream.config.max_bytes
    if (size <= 0 || stream.state.bytes < size * fullShare) return null
    const all = await jsm.consumers.list(streamName).next()
    const behind = all.filter((one) => isOurs(one.name) && one.num_pending + one.num_ack_pending > 0)
    const before = doubtful
    doubtful = new Map(behind.filter((one) => isBeforeAll(one, stream)).map((one) => [one.name, handledUpTo(one)]))
    const next = behind.find((one) =>
      isBeforeAll(one, stream) ? before.get(one.name) === handledUpTo(one) : isAmongOldest(one, stream),
    )
    return next?.name ?? null
  }

  async function lookAgain() {
    ;[lookedAt, since] = [performance.now(), 0]
    const before = held
    try {
      held = await look()
    } catch (err) {
      // Whoever cannot be asked can take nothing either: then the publishing itself waits.
      log.warn({ err }, 'the fill level of the stream cannot be read')
      return false
    }
    if (held !== before)
      log.warn(
        { consumer: held ?? before },
        held
          ? 'the stream is full of events that this consumer has not handled: publishing waits'
          : 'the stream has room again',
      )
    return true
  }

  return {
    async heldBy() {
      if (performance.now() - lookedAt < lookEveryMs && since < size * lookEveryShare && held === null) return null
      await lookAgain()
      return held
    },
    look: lookAgain,
    filled(bytes) {
      since += bytes
    },
  }
}

const handledUpTo = ({ ack_floor: floor }: ConsumerInfo) => floor.stream_seq

/**
 * What it has handled last is gone from the stream: its next one may stand anywhere in it, when few events are for it. It is
 * in danger if it does not move from one look to the next.
 */
const isBeforeAll = (consumer: ConsumerInfo, { state }: StreamInfo) => handledUpTo(consumer) + 1 < state.first_seq

const isAmongOldest = (consumer: ConsumerInfo, { state }: StreamInfo) =>
  handledUpTo(consumer) + 1 < state.first_seq + (state.last_seq - state.first_seq + 1) * oldestShare
