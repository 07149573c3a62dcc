import { ourEnvelope, toOurWords } from '../upstream/words.ts'
import type { WaitingItem } from './waiting-items.ts'

/** One message or status in the platform's envelope, in our words. What we put in ourselves (`biz_opaque_callback_data`) is taken out. */
export function passthroughOf({ entryId, kind, metadata, contacts, part }: WaitingItem) {
  const { biz_opaque_callback_data: _ours, ...rest } = part
  const value = {
    messaging_product: 'chat',
    metadata,
    ...(contacts.length > 0 && { contacts }),
    [kind === 'status' ? 'statuses' : 'messages']: [withEmoji(rest)],
  }
  return {
    object: ourEnvelope,
    entry: [{ id: entryId, changes: [{ field: 'messages', value: toOurWords(value) as Record<string, unknown> }] }],
  }
}

/** A reaction that was taken back comes without an emoji, with null or an empty one: it is told with an empty one. */
function withEmoji(part: Record<string, unknown>) {
  const { type, reaction } = part
  if (type !== 'reaction' || typeof reaction !== 'object' || reaction === null) return part
  return { ...part, reaction: { ...reaction, emoji: ('emoji' in reaction ? reaction.emoji : null) ?? '' } }
}
