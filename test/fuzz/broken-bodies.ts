import { toJsonText } from './raw-json.ts'

/** Bodies that are wrong as a whole, and the status of the answer where it is the same for every operation. */
export function brokenBodies(value: unknown): [string, Buffer, number | null][] {
  const text = toJsonText(value)
  const fields = text.slice(1, -1)
  const more = (pair: string) => Buffer.from(fields === '' ? `{${pair}}` : `{${fields},${pair}}`)
  return [
    ['no body', Buffer.alloc(0), null],
    ...['null', '[]', '"x"', '7', 'true', '{', 'nonsense', `${text}x`, `[${text}]`, `${text.slice(0, -1)},}`].map(
      (broken): [string, Buffer, number] => [`the body ${broken.slice(0, 20)}`, Buffer.from(broken), 400],
    ),
    ['33 levels', more(`"deep":${'['.repeat(32)}${']'.repeat(32)}`), 400],
    ['100,000 levels', Buffer.from('['.repeat(100_000) + ']'.repeat(100_000)), 400],
    ['100,000 levels without an end', Buffer.from('{"a":'.repeat(50_000)), 400],
    ['no UTF-8', Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff, 0xfe, 0xc0]), Buffer.from('"}')]), 400],
    ['too large a body', Buffer.from(`{"large":"${'x'.repeat(257 * 1024)}"}`), 413],
    ['a key twice', more(fields.split(/,(?=")/)[0] ?? '"a":1'), null],
    [
      '__proto__',
      more('"__proto__":{"type":"text","name":"x","isAdmin":true},"constructor":{"prototype":{"x":1}}'),
      null,
    ],
    ['an unknown key', more('"from":"+15550001111","organization_id":"org_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD","":0'), null],
    ['1e400 under an unknown key', more('"huge":1e400,"exact":12345678901234567890'), null],
    ['U+0000 in a key', more('"a\\u0000b":1'), 400],
  ]
}
