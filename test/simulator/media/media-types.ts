import type { MediaType } from '../messages/check-media.ts'

const kilobyte = 1024
const megabyte = 1024 * kilobyte

const image = ['image/jpeg', 'image/png']
const video = ['video/mp4', 'video/3gpp']
const audio = ['audio/aac', 'audio/amr', 'audio/mpeg', 'audio/mp4', 'audio/ogg']
const sticker = ['image/webp']
const document = [
  'text/plain',
  'application/pdf',
  'application/msword',
  'application/vnd.ms-excel',
  'application/vnd.ms-powerpoint',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation',
]

/** The types of file that each kind of message takes, and how large they may be. */
const kinds: Record<MediaType, { types: string[]; maxBytes: number }> = {
  audio: { types: audio, maxBytes: 16 * megabyte },
  document: { types: document, maxBytes: 100 * megabyte },
  image: { types: image, maxBytes: 5 * megabyte },
  sticker: { types: sticker, maxBytes: 500 * kilobyte },
  video: { types: video, maxBytes: 16 * megabyte },
}

export const acceptedTypes = Object.values(kinds)
  .flatMap(({ types }) => types)
  .toSorted()

/** No file of any kind is larger. */
export const largestFileBytes = kinds.document.maxBytes

/** `audio/ogg; codecs=opus` is `audio/ogg`. */
export const bareType = (mimeType: string) => mimeType.split(';', 1)[0]?.trim().toLowerCase() ?? ''

/** How large a file of this type may be; undefined for a type that is not taken at all. */
export const maxBytesOf = (mimeType: string) =>
  Object.values(kinds).find(({ types }) => types.includes(mimeType))?.maxBytes

export const fitsKind = (kind: MediaType, mimeType: string) =>
  // Any document that could be uploaded may be sent as one, images and films too.
  kind === 'document' || kinds[kind].types.includes(mimeType)

/** The types of a kind, as a refusal lists them. */
export const typesOfKind = (kind: MediaType) => kinds[kind].types.join(', ')
