import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Also the user whom Postgres runs as may enter it. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'messaging-service-bench-'))
  chmodSync(folder, 0o711)
  return folder
}
