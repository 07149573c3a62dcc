import ipaddr from 'ipaddr.js'

/** Networks, as an operator wrote them down. */
export interface Networks {
  isEmpty: boolean
  has: (address: string) => boolean
}

/** Reads `10.1.0.0/16, ::1/128`; a single address stands for itself. Throws the end of a sentence about the first that is wrong. */
export function parseNetworks(text: string): Networks {
  const ranges = text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map(parseNetwork)
  return {
    isEmpty: ranges.length === 0,
    has(address) {
      const parsed = parse(address)
      return parsed !== null && ranges.some((range) => range[0].kind() === parsed.kind() && parsed.match(range))
    },
  }
}

function parseNetwork(part: string) {
  try {
    if (part.includes('/')) return ipaddr.parseCIDR(part)
    const address = ipaddr.process(part)
    return [address, address.kind() === 'ipv4' ? 32 : 128] satisfies [unknown, number]
  } catch (cause) {
    throw new Error(`must be networks such as 10.1.0.0/16, separated by commas, not ${JSON.stringify(part)}`, { cause })
  }
}

/** What is given out of IPv6 so far; ipaddr.js calls everything unicast that has no other name, `::7f00:1` too. */
const givenOut = ipaddr.parseCIDR('2000::/3')

/** Whether an address belongs to one machine of the public internet. IPv6 forms that carry an IPv4 address are judged by it, or refused. */
export function isPublicUnicast(address: string): boolean {
  const parsed = parse(address)
  return parsed?.range() === 'unicast' && (parsed.kind() === 'ipv4' || parsed.match(givenOut))
}

/** IPv4 in IPv6 clothes (`::ffff:127.0.0.1`) becomes IPv4. */
function parse(address: string) {
  return ipaddr.isValid(address) ? ipaddr.process(address) : null
}
