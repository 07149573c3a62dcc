import { createInTurn, type InTurn } from '@app/shared/bus/in-turn.ts'
import { batched } from '@app/shared/work/batched.ts'
import type { KeyRing } from '@app/shared/service/environment.ts'
import type { Loop } from '@app/shared/work/loop.ts'
import type { CursorKeys } from '@app/shared/api/page.ts'
import type { Relay } from '@app/shared/events/relay.ts'
import type { DataService } from '@app/shared/service/service.ts'
import { insertContacts, type NewContact } from './contacts/insert-contacts.ts'
import { type Inbound, insertInbounds, type RecordedInbound } from './conversations/insert-inbounds.ts'
import { type Found, lookUp, type Question } from './conversations/look-up.ts'

interface Parts {
  relay: Relay
  /** Detaches deleted labels; wake it after a deletion. */
  detaching: Loop
  cursorKeys: CursorKeys
  /**
   * To be called after the commit that changed what `Parties` shows of these contacts or conversations, or deleted them. Also when the
   * commit failed: it may be done and its answer lost, and a repeated request finds nothing to change. Said in vain it does no harm.
   */
  tellChanged: (ids: string[]) => void
}

/** What a directory handler may use. */
export interface App extends DataService, Parts {
  /** Empty: no answer of directory holds a secret. */
  sealKeys: KeyRing
  /** Who the names mean, in natural batches. */
  lookUp: (question: Question) => Promise<Found>
  /** True when the contact was made, false when one of its names is taken. In natural batches. */
  insertContact: (contact: NewContact) => Promise<boolean>
  /** Null when it is recorded already, its conversation is not the contact's any more, or the contact is gone. In natural batches. */
  insertInbound: (inbound: Inbound) => Promise<RecordedInbound | null>
  /** One search of an organization at a time. */
  searchInTurn: InTurn
  /** One change of many contacts at a time: several would make events faster than the relay, which all organizations share, publishes. */
  bulkInTurn: InTurn
  /**
   * What the platform tells of people: hundreds at once after a backlog, each in a transaction of its own. In turn, so that connections are
   * left for others.
   */
  peopleInTurn: InTurn
}

export function createApp(service: DataService, parts: Parts): App {
  const { sql } = service
  return {
    ...service,
    ...parts,
    sealKeys: { current: '', byId: new Map() },
    lookUp: batched((questions: Question[]) => lookUp(sql, questions), { inFlight: 1, ownerOf }),
    insertContact: batched((contacts: NewContact[]) => insertContacts(sql, contacts), { ownerOf }),
    insertInbound: batched((inbounds: Inbound[]) => insertInbounds(sql, inbounds), { ownerOf }),
    searchInTurn: createInTurn('searches', 1),
    bulkInTurn: createInTurn('changes of many contacts', 1),
    peopleInTurn: createInTurn('changes of people', 4),
  }
}

const ownerOf = ({ organizationId }: { organizationId: string }) => organizationId
