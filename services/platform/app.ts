import type { InTurn } from '@app/shared/bus/in-turn.ts'
import type { KeyRing } from '@app/shared/service/environment.ts'
import type { CursorKeys } from '@app/shared/api/page.ts'
import type { Relay } from '@app/shared/events/relay.ts'
import type { DataService } from '@app/shared/service/service.ts'
import type { RateTiers } from './organizations/rate-tiers.ts'
import type { Upstream } from '@app/shared/outside/upstream.ts'
import type { InLine } from '@app/shared/work/turns.ts'

/** What a platform handler may use. */
export interface App extends DataService {
  relay: Relay
  /** For what clients change: while it waits for the organization's row, it holds a connection. */
  inTurn: InTurn
  /** One search of an organization at a time. */
  searchInTurn: InTurn
  /** One list of its numbers at a time, since that list has no pages. */
  listInTurn: InTurn
  /** All other reads: as many at a time as leave connections for the look-ups of keys, without which nobody is answered. */
  readInTurn: InTurn
  /** For what polls of numbers change. */
  changeInLine: InLine
  cursorKeys: CursorKeys
  /** Seals the upstream credentials, and stored answers that hold a secret. */
  sealKeys: KeyRing
  rateTiers: RateTiers
  upstream: Upstream
  /** Origin of the URLs that are handed out. */
  publicUrl: string
  /** Of our app at the platform: what proves that a dialog's code was given to us. */
  upstreamAppSecret: string
}
