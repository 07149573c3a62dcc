import { expect, test } from 'vitest'
import { headBytes, plainType, settleType, whyUnfit } from './settle-type.ts'

const office = 'application/vnd.openxmlformats-officedocument'
const word = `${office}.wordprocessingml.document`
const mp4 = (brand: string) => `\0\0\0\x20ftyp${brand}\0\0\x02\0isomiso2mp41`

/** A chunk of a PNG, without its sum. */
const chunk = (name: string, length: number) => `\0\0\0${String.fromCharCode(length)}${name}${'\0'.repeat(length + 4)}`
const png = (...chunks: string[]) => `\x89PNG\r\n\x1a\n${chunk('IHDR', 13)}${chunks.join('')}${chunk('IDAT', 100)}`

/** A zip with one stored file, of which the name tells what it is. */
const zip = (name: string) =>
  `PK\x03\x04\x14${'\0'.repeat(13)}\x04\0\0\0\x04\0\0\0${String.fromCharCode(name.length)}\0\0\0${name}text`

test.each([
  ['JPEG', '\xff\xd8\xff\xe0\0\x10JFIF\0', 'image/jpeg', 'image/jpeg'],
  ['JPEG without a word', '\xff\xd8\xff\xe0\0\x10JFIF\0', '', 'image/jpeg'],
  ['JPEG as PNG', '\xff\xd8\xff\xe0\0\x10JFIF\0', 'image/png', null],
  ['GIF', 'GIF89a', 'image/gif', null],
  ['PNG', png(), 'image/png', 'image/png'],
  ['animated PNG', png(chunk('acTL', 8)), 'image/png', 'image/png'],
  ['animated PNG without a word', png(chunk('acTL', 8)), '', 'image/png'],
  ['PDF', '%PDF-1.7\n', 'application/pdf', 'application/pdf'],
  ['PDF as text', '%PDF-1.7\n', 'text/plain', null],
  ['PDF behind blank lines', '\r\n\n%PDF-1.7\n', 'application/pdf', 'application/pdf'],
  ['PDF behind blank lines as JPEG', '\n%PDF-1.7\n', 'image/jpeg', null],
  ['a picture that names PDF', '\xff\xd8\xff\xe0 %PDF-1.7\n', 'application/pdf', null],
  ['text', 'Hello', 'text/plain', 'text/plain'],
  ['text that begins as a bitmap does', 'BMW is a maker of cars.', 'text/plain', 'text/plain'],
  ['text without a word', 'Hello', '', null],
  ['bytes as text', 'He\0llo', 'text/plain', null],
  ['a page', '<html></html>', 'text/html', null],
  ['old Word', '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', 'application/msword', 'application/msword'],
  ['old Office without a word', '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', '', null],
  ['new Word', zip('word/x.xml'), word, word],
  ['new Word with a password', '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', word, word],
  ['old Office as PDF', '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', 'application/pdf', null],
  ['a zip', zip('a.txt'), 'application/zip', null],
  ['a zip as JPEG', zip('a.txt'), 'image/jpeg', null],
  ['MP4', mp4('isom'), 'video/mp4', 'video/mp4'],
  ['MP4 as audio', mp4('isom'), 'audio/mp4', 'audio/mp4'],
  ['M4A', mp4('M4A '), 'audio/mp4', 'audio/mp4'],
  ['M4V', mp4('M4V '), 'video/mp4', 'video/mp4'],
  ['M4V under its own name', mp4('M4V '), plainType('video/x-m4v'), 'video/mp4'],
  ['QuickTime', mp4('qt  '), 'video/mp4', null],
  ['MP3', '\xff\xfb\x90\x64', 'audio/mpeg', 'audio/mpeg'],
  ['text that begins as a tag does', 'ID3\n', 'text/plain', 'text/plain'],
  ['AMR', '#!AMR\n', 'audio/amr', 'audio/amr'],
  ['Opus', `OggS\0\x02${'\0'.repeat(20)}\x01\x13OpusHead`, 'audio/ogg', 'audio/ogg'],
  [
    'Opus under its container’s name',
    `OggS\0\x02${'\0'.repeat(20)}\x01\x13OpusHead`,
    plainType('application/ogg'),
    'audio/ogg',
  ],
  ['Vorbis', `OggS\0\x02${'\0'.repeat(20)}\x01\x1e\x01vorbis`, 'audio/ogg', null],
])('%s: %j as %j is %j', async (_name, bytes, declared, expected) => {
  // Files are longer than what is looked at.
  const head = Buffer.concat([Buffer.from(bytes, 'latin1'), Buffer.alloc(declared === 'text/plain' ? 0 : headBytes)])
  expect(await settleType(head.subarray(0, headBytes), declared)).toBe(expected)
})

test.each([
  [35, 0],
  [35, 100],
  [headBytes - 10, 0],
  [9_000, 0],
])('an MP3 may begin with a tag: %i bytes, and %i empty ones before the sound', async (length, gap) => {
  const tag = Buffer.from([...Buffer.from('ID3'), 3, 0, 0, 0, 0, length >> 7, length & 127])
  const sound = Buffer.from([0xff, 0xfb, 0x90, 0x64])
  const head = Buffer.concat([tag, Buffer.alloc(length + gap), sound, Buffer.alloc(headBytes)]).subarray(0, headBytes)
  expect(await settleType(head, 'audio/mpeg')).toBe('audio/mpeg')
  expect(await settleType(head, '')).toBe('audio/mpeg')
  expect(await settleType(head, 'audio/aac')).toBeNull()
})

test.each([
  ['image/JPG; q=1', 'image/jpeg'],
  ['audio/ogg; codecs=opus', 'audio/ogg'],
  ['Text/Plain; charset=utf-8', 'text/plain'],
  ['application/octet-stream', ''],
  [undefined, ''],
])('%j says %j', (contentType, expected) => {
  expect(plainType(contentType)).toBe(expected)
})

test.each([
  [
    '\x89PNG\r\n\x1a\n\0\0\0\rIHDR',
    'image/jpeg',
    'The file is not image/jpeg, as its Content-Type says: it is image/png.',
  ],
  ['<html></html>', 'application/pdf', 'The file is not application/pdf, as its Content-Type says.'],
  ['a,b', 'text/csv', 'Files of the type text/csv cannot be sent.'],
  [
    '%PDF-1.7\n',
    'text/html',
    'Files of the type text/html cannot be sent. This one is application/pdf: say so in its Content-Type.',
  ],
  ['Hello', '', 'The type of the file cannot be told from its bytes, or cannot be sent: give its Content-Type.'],
])('%j as %j is refused with what is wrong', async (bytes, declared, said) => {
  expect(await whyUnfit(Buffer.concat([Buffer.from(bytes, 'latin1'), Buffer.alloc(headBytes)]), declared)).toBe(said)
})
