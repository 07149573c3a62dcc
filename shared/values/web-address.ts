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

const start = /^https?:\/\/[\w.~:@!$&'()*+,;=%[\]-]+(?=[/?#]|$)/i

/** What a browser leaves behind the host, and a URI has not. */
const noUri = /%(?![\da-f]{2})|[^\w.~:/?#@!$&'()*+,;=%-]/gi

/** Only one `#` stands in a URI, before its fragment. */
const isOfUri = (text: string) => text.search(noUri) < 0 && text.indexOf('#') === text.lastIndexOf('#')

/**
 * The URL as it was given. With a character that no URI has, which a header cannot hold and readers of answers refuse that take it for
 * one (Java's), as a browser writes it, with what a browser leaves escaped, too.
 */
export function uriOf(url: string): string {
  const [host] = start.exec(url) ?? []
  if (host !== undefined && isOfUri(url.slice(host.length))) return url
  const { href, protocol } = new URL(url)
  const path = href.indexOf('/', protocol.length + '//'.length)
  const behind = href.slice(path).replaceAll(noUri, encodeURIComponent)
  const fragment = behind.indexOf('#') + 1
  return href.slice(0, path) + behind.slice(0, fragment) + behind.slice(fragment).replaceAll('#', '%23')
}
