import type { Handler } from '@app/shared/api/contract.ts'
import { getMessageMedia as contract } from '@app/shared/contracts/media.ts'
import { envelopeOf } from '@app/shared/api/envelope.ts'
import { notFound, Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { shownFiles } from './media.ts'

export const getMessageMedia: Handler<App, typeof contract> = async (
  app,
  { params },
  { organizationId, requestId },
) => {
  const [message] = await app.sql<{ mediaId: string | null }[]>`
    select media_id from messages
    where organization_id = ${organizationId} and phone_number_id = ${params.phone_number_id} and id = ${params.id}
  `
  if (!message) throw notFound()
  const { mediaId } = message
  const file = (await shownFiles(app, organizationId, [mediaId])).get(mediaId)
  if (file?.status !== 'ready') throw new Problem('resource_not_found', { message: missing[file?.status ?? 'none'] })
  const body = envelopeOf(contract, { id: params.id, object: 'message', media_url: file.url }, requestId)
  return { whole: true, status: 302, body, replayed: false, location: file.url }
}

const missing = {
  none: 'The message has no file here.',
  pending: 'The file of the message is still being copied from the platform.',
  failed: 'The file of the message could not be had from the platform.',
}
