import { expect, test } from 'vitest'
import { hasShortHost, uriOf, urlIn } from './web-address.ts'

/** No two neighbours alike, so that nothing of it is short for a parser. */
const otherScript = (length: number) =>
  Array.from({ length }, (_, n) => String.fromCodePoint(0x4e00 + ((n * 7919) % 20_000))).join('')

test('a text is the URL that it spells', () => {
  for (const text of ['https://example.com/a?b#c', 'http://müller.example:8080', ' HTTPS:\\\\example.com', 'foo:bar'])
    expect(urlIn(text)?.href).toBe(new URL(text).href)
  for (const text of ['', 'example.com', '/path', 'https://', '://a']) expect(urlIn(text)).toBe(null)
})

test('as long as may be are path, query, fragment and user name; the host is as long as a name can be', () => {
  const long = otherScript(5_000)
  for (const text of [`https://a.example/${long}`, `https://a.example?${long}`, `https://a.example#${long}`])
    expect(urlIn(text)?.host).toBe('a.example')
  expect(urlIn(`https://${long}@a.example/`)?.host).toBe('a.example')
  expect(hasShortHost(`https://${'a.'.repeat(126)}a:65535/`)).toBe(true)
  expect(hasShortHost(`https://${'a'.repeat(301)}/`)).toBe(false)
})

test.each([
  ['as it is', (host: string) => `https://${host}/`],
  ['without slashes', (host: string) => `https:${host}`],
  ['behind many', (host: string) => `https:////\\\\${host}`],
  ['behind a tab', (host: string) => `https:/\t/${host}`],
  ['in lines', (host: string) => `ht\ntps://\r${host}`],
  ['behind spaces', (host: string) => `  https://${host}`],
  ['behind a user', (host: string) => `https://a@b:c@${host}`],
  ['in percents', (host: string) => `https://${encodeURIComponent(host)}`],
])('a host of another script that is too long is not parsed: %s', (_, textOf) => {
  expect(URL.canParse(textOf(otherScript(400)))).toBe(true)
  expect(urlIn(textOf(otherScript(400)))).toBe(null)
})

test.each([
  'https://example.com',
  'HTTPS://Example.com:443/?#',
  'http://[::1]:9/a%2fb?c=d&e#f',
  "https://u:p@example.com/(~!$&'*+,;=:@)",
])('a URI stays as it was given: %s', (url) => {
  expect(uriOf(url)).toBe(url)
})

test.each([
  ['https://Müller.example?ä={1}|2', 'https://xn--mller-kva.example/?%C3%A4=%7B1%7D%7C2'],
  ['https://example.com:443/{a}/[b]^`|%zz%2', 'https://example.com/%7Ba%7D/%5Bb%5D%5E%60%7C%25zz%252'],
  ['https://example.com/a b#c#d%', 'https://example.com/a%20b#c%23d%25'],
  ['http://[::1]/?a[]=1', 'http://[::1]/?a%5B%5D=1'],
  ['https://example.com\\a', 'https://example.com/a'],
  ['https://example.com/##', 'https://example.com/#%23'],
])('what no URI has is escaped: %s', (url, uri) => {
  expect(uriOf(url)).toBe(uri)
  expect(uriOf(uri)).toBe(uri)
  // What it leads to is the same: servers read what is escaped and what is not alike.
  expect(decoded(uri)).toBe(decoded(url))
})

const decoded = (url: string) => decodeURIComponent(new URL(url).href.replaceAll(/%(?![\da-f]{2})/gi, '%25'))

test('a URL takes no longer for what it is made of', () => {
  const url = `https://example.com/${'#'.repeat(100_000)}`
  const startedAt = performance.now()
  expect(uriOf(url)).toBe(`https://example.com/#${'%23'.repeat(99_999)}`)
  expect(performance.now() - startedAt).toBeLessThan(1_000)
})
