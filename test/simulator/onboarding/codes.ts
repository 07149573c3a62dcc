import { randomBytes } from 'node:crypto'
import { createBoundedMap } from '../bounded-map.ts'
import type { SettingsStore } from '../settings.ts'

interface Code {
  accessToken: string
  issuedAt: number
  isSpent: boolean
}

export type Codes = ReturnType<typeof createCodes>

/** The dialog's codes: each is good for once, and not for long. */
export function createCodes(settings: SettingsStore) {
  const codes = createBoundedMap<Code>(10_000)
  return {
    issue: (accessToken: string) => {
      const code = `AQ${randomBytes(120).toString('base64url')}`
      codes.set(code, { accessToken, issuedAt: Date.now(), isSpent: false })
      return code
    },
    /** The token that the code buys, or why it buys none. */
    spend: (code: string): { accessToken: string } | 'unknown' | 'spent' | 'expired' => {
      const known = codes.get(code)
      if (!known) return 'unknown'
      if (known.isSpent) return 'spent'
      if (Date.now() - known.issuedAt >= settings.current.signup_code_ms) return 'expired'
      known.isSpent = true
      return { accessToken: known.accessToken }
    },
  }
}
