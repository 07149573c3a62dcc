import type { CursorKeys } from '@app/shared/api/page.ts'
import { createInTurn, type InTurn } from '@app/shared/bus/in-turn.ts'
import type { KeyRing } from '@app/shared/service/environment.ts'
import type { Mailbox } from '@app/shared/mailbox/mailbox.ts'
import type { Relay } from '@app/shared/events/relay.ts'
import type { DataService } from '@app/shared/service/service.ts'
import type { Upstream } from '@app/shared/outside/upstream.ts'
import type { createAcceptCallback } from './callbacks/accept-callback.ts'
import type { Meters } from './metrics.ts'
import type { MediaWays } from './media/media.ts'
import type { KnownConversations } from './sends/known-conversations.ts'
import type { createRefusalOf } from './senders/refusal-of.ts'
import type { OpenSend } from './sends/open-send.ts'
import type { acceptSends } from './sends/accept-send.ts'
import type { KnownTemplates } from './templates/known-templates.ts'
import type { Readings } from './templates/readings.ts'

/** What every part of messaging may use. */
export interface Core extends DataService {
  relay: Relay
  sealKeys: KeyRing
  cursorKeys: CursorKeys
  upstream: Upstream
  askInTurn: InTurn
  known: KnownConversations
  templates: KnownTemplates
  readings: Readings
  media: MediaWays
  meters: Meters
}

/** What may take long in vain, few of an organization at a time. */
interface QueryTurns {
  /** A list of those that may read much. */
  listInTurn: InTurn
  /** A look at what a read receipt reads. */
  receiptInTurn: InTurn
  /** A taking over of all templates. */
  syncInTurn: InTurn
}

export const createQueryTurns = (): QueryTurns => ({
  listInTurn: createInTurn('lists', 1),
  receiptInTurn: createInTurn('read receipts', 2),
  syncInTurn: createInTurn('syncs', 1),
})

/** What a messaging handler may use. */
export interface App extends Core, QueryTurns {
  acceptSend: ReturnType<typeof acceptSends>
  refusalOf: ReturnType<typeof createRefusalOf>
  acceptCallback: ReturnType<typeof createAcceptCallback>
  dispatcher: Mailbox<OpenSend>
  callbacks: Mailbox
  copier: Mailbox
}
