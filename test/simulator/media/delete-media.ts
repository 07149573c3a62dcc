import type { App } from '../app.ts'
import type { Caller } from '../graph/authenticate.ts'
import type { Query } from '../graph/nodes.ts'
import { ownMedium } from './read-media.ts'

/** `DELETE /{v}/{media_id}`; undefined when there is none of this id. */
export async function deleteMedia(app: App, id: string, caller: Caller, query: Query) {
  if (!ownMedium(app, id, caller, query)) return undefined
  await app.media.remove(id)
  await app.dataFile.save()
  return { success: true }
}
