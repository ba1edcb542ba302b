// Groups addresses of clients that are likely one client.
import { isIPv6 } from 'node:net'

/** Groups of an IPv6 address that name a network: a host chooses its address in it freely (RFC 4291, section 2.5.4). */
const networkGroups = 4

/** The /64 network of an IPv6 address; every other address as it is. */
export function networkOf(address: string): string {
  const [plain = ''] = address.split('%')
  if (!isIPv6(plain) || plain.includes('.')) return address
  const [head = '', tail] = plain.split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) {
    const after = tail === '' ? [] : tail.split(':')
    const missing = 2 * networkGroups - groups.length - after.length
    groups.push(...Array.from({ length: missing }, () => '0'), ...after)
  }
  const numbers = groups.slice(0, networkGroups).map((group) => Number.parseInt(group, 16).toString(16))
  return `${numbers.join(':')}::/64`
}
