import { hash } from 'node:crypto'
import type { Signup } from './signup-settings.ts'

const name = 'svc_setup'

/** 32 bytes in base64url; other lengths may come one day. */
const tokenShape = /^[\w-]{20,128}$/

export const isToken = (text: string): boolean => tokenShape.test(text)

/** Links that a browser may have open at once, each in a tab of its own. */
const mostLinks = 8

/** What tells a link in an address: nobody finds the token by it. */
export const nameOf = (token: string): string => hash('sha256', token).slice(0, 16)

/**
 * Keeps the link's token, before those that the browser has, out of the address bar, of the history, and of scripts. `Lax`: the
 * visitor comes from a mail or from another site, and what changes something is a POST, which brings it from our own page alone.
 */
export function setupCookie(token: string, cookies: string | undefined, { isSecure, root }: Signup): string {
  const tokens = [...new Set([token, ...tokensIn(cookies)])].slice(0, mostLinks)
  return `${name}=${tokens.join('.')}; Path=${root}/setup; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
}

/** The token of the link that is called so; without a name, of the newest that the browser opened. */
export function tokenIn(cookies: string | undefined, link: string | null): string | null {
  const tokens = tokensIn(cookies)
  return (link === null ? tokens[0] : tokens.find((token) => nameOf(token) === link)) ?? null
}

const tokensIn = (cookies = '') =>
  cookies.split(';').flatMap((cookie) => {
    const [key = '', value = ''] = cookie.trim().split('=')
    return key === name ? value.split('.').filter(isToken) : []
  })
