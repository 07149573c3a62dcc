import { ourEnvelope, toOurWords } from '../upstream/words.ts'
import { subKindOf } from './contents.ts'
import { secondsOf } from './epoch.ts'
import type { WaitingItem } from './waiting-items.ts'

/** One message or status in the platform's envelope, in our words. What we put in ourselves (`biz_opaque_callback_data`) is taken out. */
export function passthroughOf({ entryId, kind, metadata, contacts, part }: WaitingItem) {
  const { biz_opaque_callback_data: _ours, ...rest } = part
  const value = {
    messaging_product: 'chat',
    metadata,
    ...(contacts.length > 0 && { contacts }),
    [kind === 'status' ? 'statuses' : 'messages']: [asPromised(rest)],
  }
  return {
    object: ourEnvelope,
    entry: [{ id: entryId, changes: [{ field: 'messages', value: toOurWords(value) as Record<string, unknown> }] }],
  }
}

/** A part with what subscribers are promised of it, however the platform writes it. */
const asPromised = (part: Record<string, unknown>) => ({
  ...part,
  timestamp: secondsOf(part['timestamp']),
  ...blockPromised(part),
})

/**
 * A reaction that was taken back comes without an emoji, with null or an empty one: it is told with an empty one. Of what
 * it does not hand on the platform may leave out the kind: it is `unknown`, as where messages are read.
 */
function blockPromised(part: Record<string, unknown>) {
  const { type, reaction, unsupported } = part
  if (type === 'unsupported')
    return { unsupported: { ...(isRecord(unsupported) && unsupported), type: subKindOf(type, part) } }
  if (type === 'reaction' && isRecord(reaction)) return { reaction: { ...reaction, emoji: reaction['emoji'] ?? '' } }
  return {}
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
