import { Problem } from '@app/shared/problem.ts'
import type { App } from '../app.ts'
import { UpstreamRefusal } from '../upstream/ask-upstream.ts'
import { type SampleFile, uploadSample } from '../upstream/upload-sample.ts'
import type { Component } from './check-components.ts'
import { isSampleKind, withSample } from './fetch-sample.ts'

interface Asking {
  token: string
  /** performance.now */
  deadline: number
}

/** The components with a header's `example.header_url` fetched, uploaded, and replaced by its handle. */
export async function uploadHeader(
  app: Pick<App, 'media' | 'upstream'>,
  asking: Asking,
  components: readonly Component[],
): Promise<Component[]> {
  return Promise.all(
    components.map(async (component, n) => {
      const kind = String(component['format']).toUpperCase()
      const { header_url: url, ...others } = (component['example'] ?? {}) as Record<string, unknown>
      if (String(component.type).toUpperCase() !== 'HEADER' || !isSampleKind(kind) || typeof url !== 'string')
        return component
      const param = `components[${n}].example.header_url`
      const handle = await withSample(app.media.egress, { url, kind, param }, (file) =>
        upload(app, asking, file, param),
      )
      return { ...component, example: { ...others, header_handle: [handle] } }
    }),
  )
}

/** A file that the platform does not take is the fault of its address. */
async function upload({ upstream }: Pick<App, 'upstream'>, asking: Asking, file: SampleFile, param: string) {
  try {
    return await uploadSample(upstream, asking, file)
  } catch (err) {
    if (!(err instanceof UpstreamRefusal) || err.isPassing || err.isAboutToken) throw err
    throw new Problem('media_upload_failed', { param, message: `${param}: ${err.sentence}`, cause: err })
  }
}
