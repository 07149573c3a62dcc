import type { Handler } from '@app/shared/api/contract.ts'
import { getMessageMedia as contract } from '@app/shared/contracts/media.ts'
import { envelopeOf } from '@app/shared/api/envelope.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { urlOf } from './media.ts'

export const getMessageMedia: Handler<App, typeof contract> = async ({ sql, media }, { params }, caller) => {
  const { organizationId, requestId } = caller
  const [row] = await sql<{ opaque: string }[]>`
    select opaque from messages m join media f on f.organization_id = m.organization_id and f.id = m.media_id
    where m.organization_id = ${organizationId} and m.phone_number_id = ${params.phone_number_id} and m.id = ${params.id}
      and f.file_key is not null
  `
  if (!row) throw notFound()
  const location = urlOf(media, row.opaque)
  const body = envelopeOf(contract, { id: params.id, object: 'message', media_url: location }, requestId)
  return { whole: true, status: 302, body, replayed: false, location }
}
