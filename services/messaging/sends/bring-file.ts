import type { Core } from '../app.ts'
import { upstreamMediaId } from '../media/upstream-media-id.ts'
import { type AttemptRecord, type Outcome, refusedOutcome, unreachableOutcome } from './outcome.ts'
import type { MessageFailure } from './message-failed.ts'
import type { OpenSend } from './open-send.ts'

/** How long a conversation is held for its file; a longer upload goes on while the conversation waits. */
const waitMs = 3_000
const lookAgainMs = 500

const unread: MessageFailure = {
  code: 'media_upload_failed',
  message: 'The stored file of the message could not be read.',
  providerCode: null,
}

/** Brings the file of a send to the platform. Nothing is begun by it: when this process dies, the next one tries again. */
export async function bringFile(core: Core, item: OpenSend, token: string): Promise<Outcome> {
  const { organizationId, phoneNumberId, media } = item
  if (!media) throw new Error(`the send ${item.id} has no file`)
  const result = await upstreamMediaId(core, { organizationId, phoneNumberId, mediaId: media.id, token }, waitMs)
  switch (result.kind) {
    case 'ready':
      return { kind: 'uploaded', upstreamMediaId: result.id }
    case 'uploading':
      return { kind: 'uploading', waitMs: lookAgainMs }
    case 'unreachable':
      return unreachableOutcome(
        item,
        attemptOf('unreachable', null, result.details),
        result.isOurs ? unread : undefined,
      )
    case 'refused': {
      const { code, details, isUnknownNumber = false, mayPass = false, askedAt } = result
      const refused = { code, message: details, details, isUnknownNumber, mayPass }
      const outcome = refusedOutcome(item, refused, attemptOf('refused', code, details))
      if (outcome.kind !== 'failed') return outcome
      const { failure } = outcome
      const ofFile = failure.code === 'upstream_error' ? { code: 'media_upload_failed' } : {}
      return { ...outcome, failure: { ...failure, ...ofFile, askedAt: askedAt ? new Date(askedAt) : undefined } }
    }
  }
}

const attemptOf = (outcome: AttemptRecord['outcome'], upstreamCode: number | null, detail: string): AttemptRecord => ({
  outcome,
  httpStatus: null,
  upstreamCode,
  detail: `upload: ${detail}`,
})
