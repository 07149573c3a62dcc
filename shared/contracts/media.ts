import { z } from 'zod'
import { rpc } from '../api/contract.ts'
import { idOf } from '../values/ids.ts'
import { phoneParams, text, time } from './fields.ts'

const sha256 = z.string().regex(/^[0-9a-f]{64}$/)

export const Media = z
  .object({
    id: idOf('med'),
    object: z.literal('media'),
    mime_type: z.string(),
    sha256: sha256.meta({ description: 'Of the bytes, in hex.' }),
    size: z.int().meta({ description: 'In bytes.' }),
    expires_at: time.meta({ description: 'Until then a message can be sent with it.' }),
  })
  .meta({ id: 'Media' })

/** The gateway has put the bytes into the store, under a key of `openUpload`. */
export const uploadMedia = rpc({
  subject: 'rpc.messaging.upload-media',
  summary: 'Upload a file to send',
  description:
    'A multipart form with one file, of at most 100 MB: JPEG or PNG images up to 5 MB; MP4 or 3GP video and AAC, AMR, MP3, M4A or Ogg Opus audio up to 16 MB; plain text, PDF and Office documents. The type is taken from the bytes and must agree with the `Content-Type` of the part (or the field `type` before it). The id can be used in sends for 30 days.',
  http: { method: 'POST', path: '/{phone_number_id}/media', status: 201, tag: 'Media', takesFile: true },
  params: phoneParams,
  body: z.object({
    file_key: z.string(),
    mime_type: z.string(),
    size: z.int(),
    sha256,
    filename: text(1, 255).nullable(),
  }),
  answer: Media,
  errors: ['media_upload_failed'],
  example: {
    body: {
      file_key: '3f/3f9a5c1e8f3f4c64a8a50f2f0c2f2b8d',
      mime_type: 'image/png',
      size: 48_213,
      sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      filename: 'receipt.png',
    },
    answer: {
      id: 'med_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
      object: 'media',
      mime_type: 'image/png',
      sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      size: 48_213,
      expires_at: '2026-03-31T12:00:00.000Z',
    },
  },
})

/** A key for a file in the store; what lies under it a day later without having been uploaded is deleted. */
export const openUpload = rpc({
  subject: 'rpc.messaging.open-upload',
  summary: 'Get a key to store a file under',
  answer: z.object({ file_key: z.string() }),
})

export const getMessageMedia = rpc({
  subject: 'rpc.messaging.get-message-media',
  summary: 'Get the media of a message',
  description:
    'Redirects to the stored file of an image, document, video or audio message. 404 while an inbound file is still being copied, and for a message without one.',
  http: { method: 'GET', path: '/{phone_number_id}/messages/{id}/media', status: 302, tag: 'Messages' },
  params: phoneParams.extend({ id: idOf('msg') }),
  answer: z.object({ id: idOf('msg'), object: z.literal('message'), media_url: z.url() }).meta({ id: 'MessageMedia' }),
  example: {
    answer: {
      id: 'msg_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
      object: 'message',
      media_url: 'https://chat.example.com/media/5f1a9c1e8f3f4c64a8a50f2f0c2f2b8d',
    },
  },
})

/** The file behind an address that we handed out. */
export const findMedia = rpc({
  subject: 'rpc.messaging.find-media',
  repeatable: true,
  summary: 'Find a stored file by its address',
  params: z.object({ opaque: z.string().regex(/^[\w-]{32}$/) }),
  answer: z.object({
    // Not said by messaging of the version before.
    organization_id: z.string().optional(),
    file_key: z.string(),
    mime_type: z.string(),
    size: z.int(),
    sha256,
    filename: z.string().nullable(),
  }),
})
