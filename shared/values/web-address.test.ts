import { expect, test } from 'vitest'
import { hasShortHost, urlIn } from './web-address.ts'

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
