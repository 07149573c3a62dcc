import type { Signup } from './signup-settings.ts'

const name = 'svc_setup'

/** 32 bytes in base64url; other lengths may come one day. */
const tokenShape = /^[\w-]{20,128}$/

export const isToken = (text: string): boolean => tokenShape.test(text)

/**
 * Keeps the link's token out of the address bar, of the history, and of scripts. `Lax`: the visitor comes from a mail or
 * from another site, and what changes something is a POST, which brings it from our own page alone.
 */
export const setupCookie = (token: string, { isSecure, root }: Signup): string =>
  `${name}=${token}; Path=${root}/setup; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`

/** The token of the newest link that the browser opened. */
export function tokenIn(cookies: string | undefined): string | null {
  for (const cookie of (cookies ?? '').split(';')) {
    const [key = '', value = ''] = cookie.trim().split('=')
    if (key === name && isToken(value)) return value
  }
  return null
}
