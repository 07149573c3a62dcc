import type { Readable } from 'node:stream'
import type { Upstream } from '@app/shared/outside/upstream.ts'
import { z } from 'zod'
import { askUpstream } from './ask-upstream.ts'

export interface SampleFile {
  body: Readable
  bytes: number
  mimeType: string
  name: string
}

/** The id of a session may carry a signature as its query. */
const Session = z.object({ id: z.string().regex(/^upload:[\x21-\x7e]+$/) })
const Uploaded = z.object({ h: z.string().min(1) })

/** Uploads a file with the platform's resumable upload; answers the handle that a template's sample names. */
export async function uploadSample(
  upstream: Upstream,
  { token, deadline }: { token: string; deadline: number },
  { body, bytes, mimeType, name }: SampleFile,
): Promise<string> {
  const query = new URLSearchParams({ file_name: name, file_length: String(bytes), file_type: mimeType })
  const session = await askUpstream(
    upstream,
    { method: 'POST', path: `/${upstream.appId}/uploads?${query.toString()}`, token, answer: Session },
    deadline,
  )
  const headers = {
    authorization: `OAuth ${token}`,
    file_offset: '0',
    'content-type': 'application/octet-stream',
    'content-length': String(bytes),
  }
  const file = { headers, body }
  const uploaded = await askUpstream(
    upstream,
    { method: 'POST', path: `/${session.id}`, token, file, answer: Uploaded },
    deadline,
  )
  return uploaded.h
}
