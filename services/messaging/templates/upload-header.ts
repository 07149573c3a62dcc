import { Problem } from '@app/shared/api/problem.ts'
import type { Core } from '../app.ts'
import { UpstreamRefusal } from '../upstream/ask-upstream.ts'
import { type SampleFile, uploadSample } from '../upstream/upload-sample.ts'
import type { Component } from './check-components.ts'
import { sampleKindOf, withSample } from './fetch-sample.ts'

interface Asking {
  organizationId: string
  token: string
  /** performance.now */
  deadline: number
}

type Ways = Pick<Core, 'sql' | 'media' | 'log' | 'upstream'>

/** The components with a header's `example.header_url` fetched, uploaded, and replaced by its handle. */
export async function uploadHeader(core: Ways, asking: Asking, components: readonly Component[]): Promise<Component[]> {
  return Promise.all(
    components.map(async (component, n) => {
      if (component.type.toUpperCase() !== 'HEADER') return component
      const kind = sampleKindOf(String(component['format']).toUpperCase())
      const { header_url: url, ...others } = (component['example'] ?? {}) as Record<string, unknown>
      if (!kind || typeof url !== 'string') return component
      const param = `components[${n}].example.header_url`
      const link = { organizationId: asking.organizationId, deadline: asking.deadline, url, kind, param }
      const handle = await withSample(core, link, (file) => upload(core, asking, file, param))
      return { ...component, example: { ...others, header_handle: [handle] } }
    }),
  )
}

/** A file that the platform does not take is the fault of its address. */
async function upload({ upstream }: Ways, asking: Asking, file: SampleFile, param: string) {
  try {
    return await uploadSample(upstream, asking, file)
  } catch (err) {
    if (!(err instanceof UpstreamRefusal) || err.isPassing || err.isAboutToken) throw err
    throw new Problem('media_upload_failed', { param, message: `${param}: ${err.sentence}`, cause: err })
  }
}
