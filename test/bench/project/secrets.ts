import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

/** What the upstream signs its callbacks with. */
export function readAppSecret(dataDir: string): string {
  const secrets = z.object({ upstreamAppSecret: z.string() })
  return secrets.parse(JSON.parse(readFileSync(join(dataDir, 'secrets.json'), 'utf8'))).upstreamAppSecret
}
