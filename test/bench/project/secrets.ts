import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { keyRing } from '@app/shared/service/environment.ts'
import { z } from 'zod'

/** What the upstream signs its callbacks with, and the services the cursors of their lists. */
const secrets = z.object({ upstreamAppSecret: z.string(), cursorKeys: keyRing })

export const readSecrets = (dataDir: string): z.output<typeof secrets> =>
  secrets.parse(JSON.parse(readFileSync(join(dataDir, 'secrets.json'), 'utf8')))
