import { createHmac, randomBytes } from 'node:crypto'
import { z } from 'zod'
import { randomId } from '../numbers/numbers.ts'
import type { SettingsStore } from '../settings.ts'
import type { Files, Incoming } from './files.ts'

/** What is known of a file; its bytes are a file of its id. */
export const Medium = z.strictObject({
  id: z.string(),
  /** Whose it is; null: it came with a callback, and every number may read it. */
  phoneNumberId: z.string().nullable(),
  mimeType: z.string(),
  filename: z.string().optional(),
  sha256: z.string(),
  size: z.number(),
  expiresAt: z.number(),
})
export type Medium = z.output<typeof Medium>

const dayMs = 24 * 3_600_000
const uploadedForMs = 30 * dayMs
const inboundForMs = 7 * dayMs
/** So that a simulator which runs for weeks does not fill the disk. */
const keptFiles = 10_000

export type Media = ReturnType<typeof createMedia>

/** The files that were uploaded, or that people sent: known by an id, read through a URL that soon dies. */
export function createMedia(known: Medium[], files: Files, settings: SettingsStore) {
  const byId = new Map(known.map((medium) => [medium.id, medium]))
  const secret = randomBytes(32)

  const find = (id: string, now = Date.now()) => {
    const medium = byId.get(id)
    return medium && now < medium.expiresAt ? medium : undefined
  }

  async function remove(id: string) {
    byId.delete(id)
    await files.remove(id)
  }

  async function sweep(now: number) {
    const expired = [...byId.values()].filter(({ expiresAt }) => expiresAt <= now)
    const tooMany = [...byId.values()].slice(0, Math.max(0, byId.size - keptFiles))
    for (const { id } of [...expired, ...tooMany]) await remove(id)
  }

  const hashOf = (id: string, expiry: number) => createHmac('sha256', secret).update(`${id} ${expiry}`).digest('hex')

  return {
    find,
    remove,
    all: () => [...byId.values()],
    add: async (incoming: Incoming, about: Pick<Medium, 'phoneNumberId' | 'mimeType' | 'filename'>) => {
      const now = Date.now()
      const expiresAt = now + (about.phoneNumberId === null ? inboundForMs : uploadedForMs)
      const medium = { id: randomId(), sha256: incoming.sha256, size: incoming.size, expiresAt, ...about }
      await files.keep(incoming, medium.id)
      byId.set(medium.id, medium)
      await sweep(now)
      return medium
    },
    /** A path that leads to the file for `media_url_ttl_ms`. */
    pathOf: (id: string, now = Date.now()) => {
      const expiry = now + settings.current.media_url_ttl_ms
      return `/whatsapp_business/attachments/?mid=${id}&ext=${expiry}&hash=${hashOf(id, expiry)}`
    },
    /** The file of such a path, while it leads there. */
    ofPath: ({ mid = '', ext = '', hash = '' }: Partial<Record<string, string>>, now = Date.now()) =>
      Number(ext) > now && hash === hashOf(mid, Number(ext)) ? find(mid, now) : undefined,
  }
}
