import type { Recorded } from '@app/shared/events.ts'

/** `pending`: the file is still being copied; `failed`: it cannot be had. */
export type MediaStatus = 'ready' | 'pending' | 'failed'

interface Payload {
  svc?: object
  data?: { message?: object }
}

/** The same event with the address of its message's file: in `svc` of the platform's envelope, in `data.message` of ours. */
export function withMedia(event: Recorded, mediaUrl: string | null, mediaStatus: MediaStatus): Recorded {
  const payload = JSON.parse(event.payload) as Payload
  const told = payload.svc ?? payload.data?.message
  if (told) Object.assign(told, { media_url: mediaUrl, media_status: mediaStatus })
  return { ...event, payload: JSON.stringify(payload) }
}
