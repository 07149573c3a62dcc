import type { Signup } from './signup-settings.ts'

/** For everything under `/setup`: no page of others frames it, learns where it was, or adds to it. */
const always = {
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
  'X-Robots-Tag': 'noindex',
  // The dialog's window may answer; other windows may not reach this one.
  'Cross-Origin-Opener-Policy': 'same-origin-allow-popups',
  'Permissions-Policy': 'camera=(), microphone=(), geolocation=()',
}

/** Exactly the origins of the platform's script and dialog, where a page opens it. */
function policyOf(signup: Signup | null): string {
  const script = signup ? ` ${new URL(signup.scriptUrl).origin}` : ''
  const dialog = signup ? ` ${signup.origins.join(' ')}` : ''
  const policy = [
    "default-src 'none'",
    `script-src 'self'${script}`,
    "style-src 'self'",
    'img-src data:',
    `connect-src 'self'${dialog}`,
    dialog === '' ? "frame-src 'none'" : `frame-src${dialog}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]
  return policy.join('; ')
}

export const headersOf = (signup: Signup | null, type: string): Record<string, string> => ({
  ...always,
  'Content-Security-Policy': policyOf(signup),
  'Content-Type': `${type}; charset=utf-8`,
  // What a link is worth changes with its use: a page from the history asks again.
  'Cache-Control': 'no-store',
})
