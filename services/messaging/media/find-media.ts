import type { Handler } from '@app/shared/api/contract.ts'
import type { findMedia as contract } from '@app/shared/contracts/media.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'

/** The address is all that is asked for: whoever has it may read the file. */
export const findMedia: Handler<App, typeof contract> = async ({ sql }, { params }) => {
  const [row] = await sql<
    {
      organizationId: string
      fileKey: string
      mimeType: string
      size: string
      sha256: string
      filename: string | null
    }[]
  >`
    select organization_id, file_key, mime_type, size, sha256, filename from media
    where opaque = ${params.opaque} and file_key is not null
  `
  if (!row) throw notFound()
  const { organizationId, fileKey, mimeType, size, sha256, filename } = row
  return {
    organization_id: organizationId,
    file_key: fileKey,
    mime_type: mimeType,
    size: Number(size),
    sha256,
    filename,
  }
}
