import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { App } from '../app.ts'
import { badParameter, GraphError } from '../graph/graph-error.ts'
import type { Query } from '../graph/nodes.ts'
import { optionalText, type Param } from '../graph/params.ts'
import { mustNameProduct } from '../messages/send-message.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'
import { acceptedTypes, bareType, maxBytesOf } from './media-types.ts'
import { receiveForm, type ReceivedFile } from './multipart.ts'

interface Upload {
  headers: IncomingHttpHeaders
  query: Query
  body: Readable
}

/** `POST /{v}/{phone_number_id}/media`: a form with the product and the file, whose type its part or a field `type` names. */
export async function uploadMedia(app: App, number: PhoneNumber, { headers, query, body }: Upload) {
  const { fields, file } = await receiveForm(app.files, headers, body)
  // To the platform a field may as well stand in the query.
  const form = { path: '', fields: { ...query, ...fields } }
  try {
    mustNameProduct(app, form)
    if (!file) throw badParameter('The parameter file is required.')
    const { incoming, filename } = file
    const mimeType = checkFile(form, file)
    const { id } = await app.media.add(incoming, { phoneNumberId: number.phoneNumberId, mimeType, filename })
    await app.dataFile.save()
    return { id }
  } catch (err) {
    if (file) await app.files.discard(file.incoming)
    throw err
  }
}

function checkFile(form: Param, { incoming, isTooLarge, mimeType: typeOfPart }: ReceivedFile) {
  const mimeType = bareType(optionalText(form, 'type') ?? typeOfPart)
  const maxBytes = maxBytesOf(mimeType)
  if (maxBytes === undefined)
    throw badParameter(
      `Param file must be a file with one of the following types: ${acceptedTypes.join(', ')}. Received file of type '${mimeType}'.`,
    )
  if (incoming.size === 0) throw badParameter('Param file must not be empty.')
  if (isTooLarge || incoming.size > maxBytes)
    throw new GraphError(131053, { details: `A file of type ${mimeType} must be at most ${maxBytes} bytes large.` })
  return mimeType
}
