import { invalidField } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { keepMedia } from '../media/keep-media.ts'
import type { OwnNumber } from '../senders/own-number.ts'
import { type Draft, paramOf, withMediaId } from './draft.ts'

/** A block whose file is the platform's already, or one of ours that has to be brought there before it can be sent. */
export interface PreparedFile {
  block: unknown
  media: { id: string; path: (string | number)[] } | null
}

/** Fetches, checks and stores the file of a send by link, or finds the one of an id. Throws what is wrong with it. */
export async function prepareFile(
  app: App,
  number: OwnNumber,
  type: string,
  { block, slot }: Draft,
  deadline: number,
): Promise<PreparedFile> {
  if (slot === null) return { block, media: null }
  const { kind, path, media } = slot
  const source = media.link === undefined ? { id: media.id ?? '' } : { link: media.link }
  const param = paramOf(type, [...path, 'link' in source ? 'link' : 'id'])
  const kept = await keepMedia(app, { ...number, deadline }, kind, source, param)
  if ('upstreamId' in kept) return { block: withMediaId(block, path, { id: kept.upstreamId }), media: null }
  if (isVoice(block) && kept.mimeType !== voiceType)
    throw invalidField('audio.voice', `audio.voice: a voice note is Ogg Opus, and the file is ${kept.mimeType}.`)
  // A document without a name shows as a number at the recipient's.
  const name = kind === 'document' && kept.filename !== null ? { filename: kept.filename } : {}
  return { block: withMediaId(block, path, { ...name, id: kept.mediaId }), media: { id: kept.mediaId, path } }
}

/** The one type that the platform shows as a voice note; of Ogg it takes Opus alone. */
const voiceType = 'audio/ogg'

/** Of the blocks, only that of an audio message has the field. */
const isVoice = (block: object) => 'voice' in block && block.voice === true
