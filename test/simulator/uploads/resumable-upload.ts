import type { Readable } from 'node:stream'
import type { App } from '../app.ts'
import { badParameter, unknownObject } from '../graph/graph-error.ts'
import type { Query } from '../graph/nodes.ts'
import { maxBytesOf } from '../media/media-types.ts'

const sampleTypes = ['application/pdf', 'image/jpeg', 'image/jpg', 'image/png', 'video/mp4']

/** `POST /{v}/{app_id}/uploads?file_name&file_length&file_type`: a session for one file. */
export function openUpload({ options, uploads }: App, appId: string, query: Query) {
  if (appId !== options.appId) throw unknownObject('post', appId)
  const { file_name: name, file_length: length, file_type: type } = query
  if (!name) throw badParameter('The parameter file_name is required.')
  if (!length || !/^[1-9]\d*$/.test(length)) throw badParameter('Param file_length must be a positive integer.')
  if (!type || !sampleTypes.includes(type))
    throw badParameter(`Param file_type must be one of {${sampleTypes.join(', ')}}.`)
  const maxBytes = maxBytesOf(type === 'image/jpg' ? 'image/jpeg' : type) ?? 0
  if (Number(length) > maxBytes) throw badParameter(`Param file_length must be at most ${maxBytes}.`)
  return { id: uploads.open(type, Number(length)) }
}

/** `POST /{v}/upload:…` with `file_offset: 0`: the bytes, whole; a file that broke off begins anew. */
export async function receiveUpload({ uploads, files }: App, id: string, offset: unknown, body: Readable) {
  const upload = uploads.find(id)
  if (!upload) throw unknownObject('post', id)
  if (offset !== '0') throw badParameter('The header file_offset must be 0.')
  const incoming = await files.receive(body)
  if (incoming.size !== upload.fileLength) {
    await files.discard(incoming)
    throw badParameter(`The file has ${incoming.size} bytes, where file_length said ${upload.fileLength}.`)
  }
  await files.keep(incoming, upload.name)
  return { h: uploads.finish(id, upload) }
}

/** `GET /{v}/upload:…`: how much of it is here. */
export function readUpload({ uploads }: App, id: string) {
  const upload = uploads.find(id)
  if (!upload) throw unknownObject('get', id)
  return { id, file_offset: upload.handle === undefined ? 0 : upload.fileLength }
}
