import type { FastifyInstance, FastifyRequest } from 'fastify'
import { unknownPath } from './graph-error.ts'
import { type Fields, isFields, type Param } from './params.ts'

/** A body as it came, and what it holds; one that is no JSON object holds nothing, as the platform sees it. */
export interface GraphBody {
  raw: string
  fields: Fields
}

export interface GraphRequest {
  /** 23 of `v23.0`. */
  version: number
  message: Param
  raw: string
}

export interface GraphRoute {
  Params: { version: string; id: string }
  Body: GraphBody | undefined
  Querystring: Partial<Record<string, string>>
}

export function parseGraphBodies(http: FastifyInstance) {
  http.removeAllContentTypeParsers()
  http.addContentTypeParser('*', { parseAs: 'string' }, (_request, raw: string, done) => done(null, parsed(raw)))
}

function parsed(raw: string): GraphBody {
  try {
    const value: unknown = JSON.parse(raw)
    return { raw, fields: isFields(value) ? value : {} }
  } catch {
    return { raw, fields: {} }
  }
}

export function graphRequest(request: FastifyRequest<GraphRoute>): GraphRequest {
  const { raw, fields } = request.body ?? { raw: '', fields: {} }
  return { version: versionOf(request), message: { path: '', fields }, raw }
}

/** @throws 2500 when the path does not begin with a version */
export function versionOf({ params, url }: { params: { version: string }; url: string }) {
  const [, version] = /^v(\d{1,2})\.\d$/.exec(params.version) ?? []
  if (version === undefined) throw unknownPath(url)
  return Number(version)
}
