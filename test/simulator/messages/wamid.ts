import { randomBytes } from 'node:crypto'

export type Direction = 'inbound' | 'outbound'

/** The frame of the real ids: the peer, a direction, a random hexadecimal name. */
const frames = { inbound: '\x15\x02\x00\x12\x18\x14', outbound: '\x15\x02\x00\x11\x18\x12' } as const
const nameLengthBytes = { inbound: 10, outbound: 9 } as const

/** A message id as the platform mints them: base64 of a record that names the peer and the direction. */
export function mintWamid(direction: Direction, peer: string) {
  const name = randomBytes(nameLengthBytes[direction]).toString('hex').toUpperCase()
  const record = `\x1c\x18${String.fromCodePoint(peer.length)}${peer}${frames[direction]}${name}\x00`
  return `wamid.${Buffer.from(record, 'latin1').toString('base64')}`
}

/** Which way a minted id went, read from the id itself, so that ids of before a restart still count; else undefined. */
export function directionOf(wamid: string): Direction | undefined {
  if (!wamid.startsWith('wamid.')) return undefined
  const record = Buffer.from(wamid.slice('wamid.'.length), 'base64').toString('latin1')
  if (!record.startsWith('\x1c\x18')) return undefined
  if (record.includes(frames.inbound)) return 'inbound'
  return record.includes(frames.outbound) ? 'outbound' : undefined
}
