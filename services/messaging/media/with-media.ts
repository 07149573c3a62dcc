import type { Recorded } from '@app/shared/events/events.ts'

/** `pending`: the file is still being copied; `failed`: it cannot be had. */
export type MediaStatus = 'ready' | 'pending' | 'failed'

interface Payload {
  svc?: object
  data?: { message?: { type: string; body: string | null } }
}

/**
 * The event with the address of its message's file added: in `svc` of the platform's envelope; in `data.message` of ours, and there in the
 * block of the message's type, too.
 */
export function withMedia(event: Recorded, mediaUrl: string | null, mediaStatus: MediaStatus): Recorded {
  const payload = JSON.parse(event.payload) as Payload
  const message = payload.data?.message
  const told = payload.svc ?? message
  if (told) Object.assign(told, { media_url: mediaUrl, media_status: mediaStatus })
  if (message) Object.assign(message, { [message.type]: { link: mediaUrl, caption: message.body } })
  return { ...event, payload: JSON.stringify(payload) }
}
