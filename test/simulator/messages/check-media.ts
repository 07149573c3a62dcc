import { badParameter, GraphError } from '../graph/graph-error.ts'
import { onlyKeys, optionalBoolean, optionalText, type Param } from '../graph/params.ts'

/** Each kind of media with what may stand beside its id or link. */
const extras = {
  audio: ['voice'],
  document: ['caption', 'filename'],
  image: ['caption'],
  sticker: [],
  video: ['caption'],
} as const

export type MediaType = keyof typeof extras

export const isMediaType = (type: string): type is MediaType => Object.hasOwn(extras, type)

/** A media block: an id or a link, and nothing that its kind does not have. */
export function checkMedia(type: MediaType, block: Param) {
  onlyKeys(block, 'id', 'link', ...extras[type])
  checkSource(block)
  optionalText(block, 'caption', 1024)
  optionalText(block, 'filename')
  optionalBoolean(block, 'voice')
}

function checkSource(block: Param) {
  const id = optionalText(block, 'id')
  const link = optionalText(block, 'link')
  if ((id === undefined) === (link === undefined))
    throw new GraphError(100, { details: `Param ${block.path} must have exactly one of id and link.` })
  if (id !== undefined && !/^\d+$/.test(id))
    throw badParameter(`Param ${block.path}['id'] is not a valid whatsapp business account media attachment ID`)
  if (link !== undefined && !isWebAddress(link)) throw badParameter(`Param ${block.path}['link'] is not a valid URI.`)
}

export function isWebAddress(text: string) {
  const url = URL.parse(text)
  return url?.protocol === 'https:' || url?.protocol === 'http:'
}
