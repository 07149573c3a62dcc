import { fileTypeFromBuffer } from 'file-type'
import { kindOf } from './media-kinds.ts'

/** So many bytes tell what a file is. */
export const headBytes = 4_100

const unsaid = new Set(['', 'application/octet-stream', 'binary/octet-stream'])

/** Other names of the same types: an animated PNG is a PNG, and Apple's M4V is MP4. */
const synonyms: Record<string, string> = {
  'image/jpg': 'image/jpeg',
  'image/apng': 'image/png',
  'audio/mp3': 'audio/mpeg',
  'audio/x-m4a': 'audio/mp4',
  'audio/m4a': 'audio/mp4',
  'audio/x-aac': 'audio/aac',
  'audio/opus': 'audio/ogg',
  'application/ogg': 'audio/ogg',
  'application/x-pdf': 'application/pdf',
  'video/3gp': 'video/3gpp',
  'video/x-m4v': 'video/mp4',
}

/** Containers that do not tell what is in them, by what may be: a new Office document with a password is in the container of the old ones. */
const containers: Record<string, RegExp> = {
  'application/zip': /^application\/vnd\.openxmlformats-officedocument\./,
  'application/x-cfb': /^application\/(msword|vnd\.ms-(excel|powerpoint)|vnd\.openxmlformats-officedocument\..+)$/,
  'video/mp4': /^audio\/mp4$/,
  'video/3gpp': /^(audio|video)\/(mp4|3gpp|amr)$/,
}

/** A type without its parameters, in lower case, under its common name; '' when nothing is said. */
export function plainType(contentType: string | undefined): string {
  const [type = ''] = (contentType ?? '').toLowerCase().split(';')
  const plain = type.trim()
  return unsaid.has(plain) ? '' : (synonyms[plain] ?? plain)
}

/**
 * What a file is, by its first bytes and by what its sender says: a type that the platform takes, or null when they
 * disagree or it takes no such file. Nothing said ('') leaves it to the bytes.
 */
export async function settleType(head: Uint8Array, declared: string): Promise<string | null> {
  const found = (await fileTypeFromBuffer(head))?.mime ?? markedElsewhere(head, declared)
  // Of ogg the platform takes opus alone.
  const sniffed = found === 'audio/ogg; codecs=opus' ? 'audio/ogg' : found === 'audio/ogg' ? '' : plainType(found)
  // Text has no mark of its own, and may begin as something else does: "BM" is a bitmap's.
  if (declared === 'text/plain' && kindOf(sniffed) === null) return isText(head) ? declared : null
  const agreed = declared === '' || declared === sniffed ? sniffed : containers[sniffed]?.test(declared) ? declared : ''
  return kindOf(agreed) === null ? null : agreed
}

/**
 * Where the mark of a file is not looked for: the tag before the sound of an MP3 may end just where the looking does, or be followed by
 * empty bytes, and a PDF may begin within its first 1,024 bytes, as some programs write blank lines before it.
 */
function markedElsewhere(head: Uint8Array, declared: string) {
  if (declared !== 'text/plain' && ascii(head, 0, 3) === 'ID3') return 'audio/mpeg'
  return declared === 'application/pdf' && ascii(head, 0, 1_024).includes('%PDF-') ? declared : undefined
}

/** Why `settleType` found nothing, for whoever sent the file. */
export async function whyUnfit(head: Uint8Array, declared: string): Promise<string> {
  if (declared === '')
    return 'The type of the file cannot be told from its bytes, or cannot be sent: give its Content-Type.'
  const found = await settleType(head, '')
  if (kindOf(declared) !== null)
    return `The file is not ${declared}, as its Content-Type says${found ? `: it is ${found}` : ''}.`
  return `Files of the type ${declared} cannot be sent.${found ? ` This one is ${found}: say so in its Content-Type.` : ''}`
}

/** WebP is for stickers alone, which the API does not have. */
export const isWebp = (head: Uint8Array): boolean => ascii(head, 0, 4) === 'RIFF' && ascii(head, 8, 12) === 'WEBP'

const ascii = (bytes: Uint8Array, from: number, to: number) => Buffer.from(bytes.subarray(from, to)).toString('latin1')

/** No control characters but those of lines and tabs. */
const isText = (head: Uint8Array) =>
  head.every((byte) => byte >= 0x20 || (byte >= 0x09 && byte <= 0x0d) || byte === 0x1b)
