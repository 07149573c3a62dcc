import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * The client's address. Each of `trustedProxies` appends its peer to `X-Forwarded-For`, so the client stands that many
 * places from the end; what it wrote there itself stands further to the left and is not believed.
 */
export function clientIp({ headers, socket }: IncomingMessage, trustedProxies: number): string {
  const peer = plain(socket.remoteAddress ?? '')
  const forwarded = headers['x-forwarded-for']
  if (trustedProxies === 0 || forwarded === undefined) return peer
  const chain = String(forwarded).split(',')
  const client = plain(withoutPort((chain.at(-trustedProxies) ?? chain[0] ?? '').trim()))
  return isIP(client) ? client : peer
}

/** Some load balancers write `203.0.113.9:4711` and `[2001:db8::1]:4711`. */
const withoutPort = (text: string) => /^(?:\[([^\]]*)\]|([\d.]+))(?::\d+)?$/.exec(text)?.slice(1).find(Boolean) ?? text

/** IPv4 as it is written, also where a socket for both families shows it as `::ffff:203.0.113.9`. */
const plain = (address: string) => (address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address)

/** Who is counted as one client: an IPv4 address, or a /64 of IPv6, which a single line is given as a whole. */
export function networkOf(ip: string): string {
  if (isIP(ip) !== 6) return ip
  return ipaddr.IPv6.networkAddressFromCIDR(`${ip.split('%')[0]}/64`).toString()
}
