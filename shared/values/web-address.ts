/** A name of DNS has at most 253 characters. A port may stand behind it. */
const longestHost = 300

/** The scheme, then all before path, query and fragment. */
const beforePath = /^[^:/?#\\]*:[/\\]*([^/?#\\]*)/

/** Parsers of URLs leave these out, wherever they stand. */
const leftOut = /[\t\n\r]/g

/**
 * Whether the host in a text is short enough to be looked at. What parsing takes grows with the square of the length of a host in
 * other scripts: 2,000 characters take 25 ms each time, 5,400 take 110, and one message could hold fifteen such links.
 */
export function hasShortHost(text: string): boolean {
  const [, authority = ''] = beforePath.exec(text.replaceAll(leftOut, '')) ?? []
  return authority.length - authority.lastIndexOf('@') <= longestHost
}

/** The URL that a stranger's text is; null for one that is none, or has a host that nobody can have. */
export const urlIn = (text: string): URL | null => (hasShortHost(text) ? URL.parse(text) : null)
