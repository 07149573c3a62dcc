/** What a message can hold beside text. */
export const mediaKinds = ['image', 'document', 'video', 'audio'] as const
export type MediaKind = (typeof mediaKinds)[number]

const mib = 1024 * 1024
const office = 'application/vnd.openxmlformats-officedocument'

/** What the platform takes of each kind (its public media reference, v23): types, and the largest size. */
export const mediaLimits: Record<MediaKind, { types: readonly string[]; maxBytes: number }> = {
  image: { types: ['image/jpeg', 'image/png'], maxBytes: 5 * mib },
  document: {
    types: [
      'text/plain',
      'application/pdf',
      'application/msword',
      'application/vnd.ms-excel',
      'application/vnd.ms-powerpoint',
      `${office}.wordprocessingml.document`,
      `${office}.spreadsheetml.sheet`,
      `${office}.presentationml.presentation`,
    ],
    maxBytes: 100 * mib,
  },
  video: { types: ['video/mp4', 'video/3gpp'], maxBytes: 16 * mib },
  audio: { types: ['audio/aac', 'audio/amr', 'audio/mpeg', 'audio/mp4', 'audio/ogg'], maxBytes: 16 * mib },
}

/** The largest file of any kind. */
export const maxMediaBytes = 100 * mib

/** The kind that a type belongs to; null when the platform does not take it. */
export const kindOf = (mimeType: string): MediaKind | null =>
  mediaKinds.find((kind) => mediaLimits[kind].types.includes(mimeType)) ?? null
