import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { strangersOf } from '../limits/in-flight.ts'
import { clientIp, networkOf } from './client-ip.ts'

const from = (remoteAddress: string, forwarded?: string) =>
  ({ socket: { remoteAddress }, headers: { 'x-forwarded-for': forwarded } }) as unknown as IncomingMessage

test('without a trusted proxy the header is not believed', () => {
  expect(clientIp(from('203.0.113.9', '198.51.100.1'), 0)).toBe('203.0.113.9')
  expect(clientIp(from('::ffff:203.0.113.9'), 0)).toBe('203.0.113.9')
})

test('each trusted proxy is one place from the right', () => {
  const request = from('10.0.0.1', 'spoofed, 198.51.100.1, 192.0.2.7')
  expect(clientIp(request, 1)).toBe('192.0.2.7')
  expect(clientIp(request, 2)).toBe('198.51.100.1')
  expect(clientIp(from('10.0.0.1', '198.51.100.1'), 2)).toBe('198.51.100.1')
  expect(clientIp(from('10.0.0.1', '2001:db8::1'), 1)).toBe('2001:db8::1')
})

test.each([
  ['203.0.113.9:4711', '203.0.113.9'],
  ['[2001:db8::1]:4711', '2001:db8::1'],
  ['[2001:db8::1]', '2001:db8::1'],
  ['2001:db8::1:4711', '2001:db8::1:4711'],
  ['::ffff:203.0.113.9', '203.0.113.9'],
  ['[spoofed]:1', '10.0.0.1'],
])('a proxy may write the port, too: %s', (forwarded, address) => {
  expect(clientIp(from('10.0.0.1', forwarded), 1)).toBe(address)
})

test('what is no address is not one', () => {
  expect(clientIp(request(), 3)).toBe('10.0.0.1')
  expect(clientIp(from('10.0.0.1'), 1)).toBe('10.0.0.1')
})

const request = () => from('10.0.0.1', 'spoofed, 198.51.100.1, 192.0.2.7')

test('IPv6 counts by its /64', () => {
  expect(networkOf('2001:db8:0:1:2:3:4:5')).toBe(networkOf('2001:db8:0:1::9'))
  expect(networkOf('2001:db8:0:2::9')).not.toBe(networkOf('2001:db8:0:1::9'))
  expect(networkOf('fe80::1%eth0')).toBe('fe80::')
  expect(networkOf('192.0.2.7')).toBe('192.0.2.7')
  const strangers = (address: string) => strangersOf({ trustedProxies: 1 }, from('10.0.0.1', address))
  expect(strangers('2001:db8:0:1:2:3:4:5')).toBe(strangers('2001:db8:0:1::9'))
  expect(strangers('2001:db8:0:2::9')).not.toBe(strangers('2001:db8:0:1::9'))
})
