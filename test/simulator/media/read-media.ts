import type { App } from '../app.ts'
import type { Caller } from '../graph/authenticate.ts'
import { badParameter } from '../graph/graph-error.ts'
import type { NodeReader, Query } from '../graph/nodes.ts'
import { wordsOf } from '../words.ts'
import type { Medium } from './media.ts'

/** The file of an id, if the caller may see it: undefined for another's, as for none. */
export function ownMedium({ media }: App, id: string, caller: Caller, query: Query): Medium | undefined {
  const medium = media.find(id)
  if (!medium) return undefined
  const { phoneNumberId } = medium
  if (phoneNumberId !== null && phoneNumberId !== caller.number.phoneNumberId) return undefined
  const named = query['phone_number_id']
  if (named !== undefined && named !== (phoneNumberId ?? caller.number.phoneNumberId))
    throw badParameter('Param phone_number_id does not match the phone number that owns the media.')
  return medium
}

/** `GET /{v}/{media_id}`: where the file is, for five minutes. */
export const readMedia: NodeReader = (app, id, caller, query) => {
  const medium = ownMedium(app, id, caller, query)
  if (!medium) return undefined
  return {
    messaging_product: wordsOf(app.settings.current).product,
    url: app.url() + app.media.pathOf(id),
    mime_type: medium.mimeType,
    sha256: medium.sha256,
    // A text, as in the platform's examples.
    file_size: `${medium.size}`,
    id,
  }
}
