import type { Caller, Handler, Input } from '@app/shared/api/contract.ts'
import { uploadMedia as contract } from '@app/shared/contracts/media.ts'
import { once } from '@app/shared/idempotency/idempotency.ts'
import { newId } from '@app/shared/values/ids.ts'
import { fingerprintOf } from '@app/shared/api/json.ts'
import type { App } from '../app.ts'
import { insertMedia } from './media.ts'
import { claimFile } from './unclaimed-files.ts'

/** Registers a file that the gateway has stored. A replay claims nothing, so what it stored again is swept. */
export const uploadMedia: Handler<App, typeof contract> = (app, input, caller) =>
  once(app, contract, sameBytes(caller, input), async (tx) => {
    const { file_key: fileKey, mime_type: mimeType, size, sha256, filename } = input.body
    const id = newId('med')
    const row = { organizationId: caller.organizationId, id, phoneNumberId: input.params.phone_number_id }
    await claimFile(tx, fileKey)
    const kept = await insertMedia(tx, [{ ...row, source: 'upload', fileKey, mimeType, size, sha256, filename }])
    const expiresAt = kept.get(id)?.toISOString() ?? ''
    return { id, object: 'media' as const, mime_type: mimeType, sha256, size, expires_at: expiresAt }
  })

/** Two requests are the same one when their bytes are: where each was stored says nothing. */
function sameBytes(caller: Caller, { params, body }: Input<typeof contract>): Caller {
  if (!caller.idempotency) return caller
  const { file_key: _, ...file } = body
  const fingerprint = fingerprintOf(`upload ${params.phone_number_id}`, file)
  return { ...caller, idempotency: { key: caller.idempotency.key, fingerprint } }
}
