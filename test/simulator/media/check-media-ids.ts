import type { App } from '../app.ts'
import { badParameter, type StatusFailure } from '../graph/graph-error.ts'
import {
  optionalList,
  optionalObject,
  optionalText,
  type Param,
  requiredObject,
  requiredText,
} from '../graph/params.ts'
import { isMediaType, type MediaType } from '../messages/check-media.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'
import { fitsKind, typesOfKind } from './media-types.ts'

/**
 * Whether the files that a checked message names by id are there, for this number. One of a type that its kind does not
 * take is accepted, and fails afterwards.
 * @throws 100 for an id that is none, or another number's
 */
export function checkMediaIds(
  { media }: App,
  number: PhoneNumber,
  type: string,
  message: Param,
): StatusFailure | undefined {
  let misfit: StatusFailure | undefined
  for (const [kind, block] of mediaBlocks(type, message)) {
    const id = optionalText(block, 'id')
    if (id === undefined) continue
    const medium = media.find(id)
    if (!medium || (medium.phoneNumberId !== null && medium.phoneNumberId !== number.phoneNumberId))
      throw badParameter(`Param ${block.path}['id'] is not a valid whatsapp business account media attachment ID`)
    if (fitsKind(kind, medium.mimeType)) continue
    const details = `Unsupported ${kind} mime type ${medium.mimeType}. Please use one of: ${typesOfKind(kind)}.`
    misfit = { code: 131053, details }
  }
  return misfit
}

function mediaBlocks(type: string, message: Param): Array<[MediaType, Param]> {
  if (isMediaType(type)) return [[type, requiredObject(message, type)]]
  const block = requiredObject(message, type)
  if (type === 'interactive') {
    const header = optionalObject(block, 'header')
    return header ? mediaOf(header) : []
  }
  if (type !== 'template') return []
  return optionalList(block, 'components').flatMap((component) =>
    optionalList(component, 'parameters').flatMap(mediaOf),
  )
}

/** What names its type, and carries its block under that name. */
function mediaOf(holder: Param): Array<[MediaType, Param]> {
  const type = requiredText(holder, 'type')
  return isMediaType(type) ? [[type, requiredObject(holder, type)]] : []
}
