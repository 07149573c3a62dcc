import type { TransactionSql } from '@app/shared/database/database.ts'
import { type FileOfNumber, keyOf, rememberedSeconds } from './hold-upload.ts'

/** An upload whose id the platform has refused in a send. */
interface RefusedUpload extends Omit<FileOfNumber, 'token'> {
  upstreamId: string
}

/** Whoever forgets files locks them in this order: else two of them could deadlock. */
const inOrder = <F extends Pick<FileOfNumber, 'phoneNumberId' | 'mediaId'>>(files: F[]) =>
  files.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))

/** The next send of the file brings it again; an id that it has got since stays. */
export async function forgetUploads(tx: TransactionSql, refused: RefusedUpload[]): Promise<void> {
  for (const { organizationId, phoneNumberId, mediaId, upstreamId } of inOrder(refused)) {
    await tx`
      update media_uploads set expires_at = now()
      where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and media_id = ${mediaId}
        and upstream_id = ${upstreamId}
    `
  }
}

/** A message whose file the platform could not take after all, though it had taken the message. */
interface FailedOverFile extends Omit<FileOfNumber, 'token'> {
  messageId: string
}

/** The same for a send that is over: the platform's refusal is about what it got before that send's last attempt. */
export async function forgetUploadsOf(tx: TransactionSql, failed: FailedOverFile[]): Promise<void> {
  for (const { organizationId, phoneNumberId, mediaId, messageId } of inOrder(failed)) {
    await tx`
      update media_uploads set expires_at = now()
      where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and media_id = ${mediaId}
        and upstream_id is not null and expires_at - ${rememberedSeconds} * interval '1 second' <= coalesce((
          select max(begun_at) from send_attempts where organization_id = ${organizationId} and message_id = ${messageId}
        ), now())
    `
  }
}
