import type { KeyRing } from '@app/shared/environment.ts'
import type { Relay } from '@app/shared/relay.ts'
import type { DataService } from '@app/shared/service.ts'
import type { RateTiers } from './organizations/rate-tiers.ts'
import type { Upstream } from '@app/shared/upstream.ts'

/** What a platform handler may use. */
export interface App extends DataService {
  relay: Relay
  /** Seals the upstream credentials. */
  sealKeys: KeyRing
  rateTiers: RateTiers
  upstream: Upstream
  /** Our app at the platform, in whose name a dialog's code is exchanged. */
  upstreamApp: { id: string; secret: string }
}
