import { Readable } from 'node:stream'
import type { Caller } from '@app/shared/api/contract.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { insist } from '@app/test/each-step.ts'
import { png } from '@app/test/png.ts'
import type { App } from '../app.ts'
import { reserveFile } from '../media/unclaimed-files.ts'
import { uploadMedia } from '../media/upload-media.ts'
import { idIn } from './id-in.ts'

/** Uploads a picture for a number, with what is before its registration done in the session `sql`. */
export async function uploadPicture(app: App, sql: Sql, phoneNumberId: string, caller: Caller): Promise<string> {
  const fileKey = await reserveFile(sql)
  const { sha256, size } = await app.media.store.put(fileKey, Readable.from([png()]))
  const body = { file_key: fileKey, mime_type: 'image/png', size, sha256, filename: null }
  const input = { params: { phone_number_id: phoneNumberId }, query: {}, body }
  const answer = await insist(() => uploadMedia(app, input, caller))
  return 'body' in answer ? idIn(answer.body) : ''
}
