import { randomBytes } from 'node:crypto'
import { createBoundedMap } from '../bounded-map.ts'

/** A file that will come, or has: its name is that of its bytes in the folder. */
export interface Upload {
  name: string
  fileType: string
  fileLength: number
  /** What a template names it by, once it is here. */
  handle: string | undefined
}

const kept = 10_000

export type Uploads = ReturnType<typeof createUploads>

/** The sessions of the resumable upload and the handles that they came to; a restart forgets them. */
export function createUploads() {
  const sessions = createBoundedMap<Upload>(kept)
  const samples = createBoundedMap<Upload>(kept)

  return {
    open: (fileType: string, fileLength: number) => {
      // The query belongs to the id: without its signature nobody finds the session.
      const id = `upload:${randomBytes(24).toString('base64url')}?sig=${randomBytes(12).toString('base64url')}`
      sessions.set(id, { name: `sample-${randomBytes(12).toString('hex')}`, fileType, fileLength, handle: undefined })
      return id
    },
    find: (id: string) => sessions.get(id),
    finish: (id: string, upload: Upload) => {
      const handle = `4::${Buffer.from(upload.fileType).toString('base64url')}:${randomBytes(48).toString('base64url')}`
      const finished = { ...upload, handle }
      sessions.set(id, finished)
      samples.set(handle, finished)
      samples.set(upload.name, finished)
      return handle
    },
    sampleOf: (handleOrName: string) => samples.get(handleOrName),
    /** Where a sample can be looked at, without a token. */
    pathOf: (handle: string) => `/samples/${samples.get(handle)?.name ?? 'gone'}`,
  }
}
