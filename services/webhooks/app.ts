import { createInTurn, type InTurn } from '@app/shared/bus/in-turn.ts'
import type { Egress } from '@app/shared/outside/egress.ts'
import type { KeyRing } from '@app/shared/service/environment.ts'
import type { Mailbox } from '@app/shared/mailbox/mailbox.ts'
import type { Relay } from '@app/shared/events/relay.ts'
import type { DataService } from '@app/shared/service/service.ts'
import type { Payloads } from './attempts/payloads.ts'
import type { Meters } from './metrics.ts'
import type { Replays } from './replays/enqueue-replays.ts'

/** What the parts of webhooks have in common. */
export interface Core extends DataService {
  relay: Relay
  cursorKeys: KeyRing
  /** Seals signing secrets, and stored answers that hold one. */
  sealKeys: KeyRing
  egress: Egress
  payloads: Payloads
  meters: Meters
}

/** What may take long in vain, one of an organization at a time. */
interface QueryTurns {
  /** A list of those that may read much. */
  listInTurn: InTurn
  /** A count of what its replays would take. */
  countInTurn: InTurn
}

export const createQueryTurns = (): QueryTurns => ({
  listInTurn: createInTurn('lists', 1),
  countInTurn: createInTurn('replays', 1),
})

/** What a handler may use. */
export interface App extends Core, QueryTurns {
  /** Makes the attempts; wake it after a commit that made a lane due. */
  attempts: Mailbox
  /** Enqueues what jobs replay. */
  replays: Replays
}
