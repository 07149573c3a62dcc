import type { InTurn } from '@app/shared/bus/changes-in-turn.ts'
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

/** What a handler may use. */
export interface App extends Core {
  /** Makes the attempts; wake it after a commit that made a lane due. */
  attempts: Mailbox
  /** Enqueues what jobs replay. */
  replays: Replays
  /** One list of an organization at a time, of those that may read much. */
  listInTurn: InTurn
  /** One count of what an organization's replays would take at a time. */
  countInTurn: InTurn
}
