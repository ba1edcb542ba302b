// The addresses that calls caused by tenants' data may reach. Addresses that could be this machine, the host cluster or
// a cloud's metadata service are denied unless the operator of the installation allows them.
import { BlockList, isIPv4, isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { embeddedIpv4, mappedIpv4 } from './embedded-ipv4.ts'

export interface AddressPolicyOptions {
  /** CIDRs that may be called although they are denied by default. */
  readonly allow?: readonly string[]
  /** CIDRs that may not be called, whatever `allow` says. */
  readonly deny?: readonly string[]
}

export interface AddressPolicy {
  /** Why this IP address may not be called; undefined if it may. */
  refusal(address: string): string | undefined
}

const denied: readonly (readonly [why: string, cidrs: readonly string[]])[] = [
  ['an unspecified address', ['0.0.0.0/8', '::/128']],
  ['a loopback address', ['127.0.0.0/8', '::1/128']],
  ['a metadata address', ['169.254.169.254/32', 'fd00:ec2::254/128', '168.63.129.16/32', '192.0.0.192/32']],
  ['a link-local address', ['169.254.0.0/16', 'fe80::/10']],
  ['a multicast address', ['224.0.0.0/4', 'ff00::/8']],
  ['a private address', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7', 'fec0::/10']],
  // Translators and tunnels: where they are allowed, the embedded IPv4 address is judged all the same.
  ['a translated address', ['64:ff9b:1::/48', '2001::/32']],
  ['a reserved address', ['192.0.0.0/24', '198.18.0.0/15', '240.0.0.0/4', '100::/64', '2001:db8::/32']],
]

/** Throws TypeError for text that is no CIDR. */
export function createAddressPolicy({ allow = [], deny = [] }: AddressPolicyOptions = {}): AddressPolicy {
  const allowed = blockList(allow)
  const forbidden = blockList(deny)
  const ranges = denied.map(([why, cidrs]) => ({ why, list: blockList(cidrs) }))
  const judge = (address: string): string | undefined => {
    if (contains(forbidden, address)) return 'an address in a range denied by --egress-deny'
    if (contains(allowed, address)) return undefined
    return (
      ranges.find(({ list }) => contains(list, address))?.why ??
      (isOwnAddress(address) ? 'an address of this machine' : undefined)
    )
  }
  return {
    refusal(address) {
      if (!isIPv4(address) && !isIPv6(address)) return 'not an IP address'
      // Both count: a range of 6to4 or NAT64 may be denied as such. `::` and `::1` only have the form of embedded addresses.
      const inner = /^(::1?|[0:]*:[01])$/.test(address) ? [] : embeddedIpv4(address)
      return [address, ...inner].map(judge).find((why) => why !== undefined)
    },
  }
}

/** True for CIDRs and for plain addresses. */
export function isCidr(text: string): boolean {
  const [address = '', length, ...rest] = text.split('/')
  const bits = isIPv4(address) ? 32 : isIPv6(address) ? 128 : -1
  if (bits < 0 || rest.length > 0) return false
  return length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= bits)
}

/** How many bits of an IPv4-mapped address come before the IPv4 address. */
const mappedBits = 96

function blockList(cidrs: readonly string[]): BlockList {
  const list = new BlockList()
  for (const cidr of cidrs) {
    if (!isCidr(cidr)) throw new TypeError(`"${cidr}" is not a CIDR such as 10.0.0.0/8`)
    const [address = '', length] = cidr.split('/')
    const family = familyOf(address)
    const bits = length === undefined ? (family === 'ipv4' ? 32 : 128) : Number(length)
    list.addSubnet(address, bits, family)
    // An IPv4-mapped range means the IPv4 addresses themselves.
    const mapped = bits >= mappedBits ? mappedIpv4(address) : undefined
    if (mapped !== undefined) list.addSubnet(mapped, bits - mappedBits, 'ipv4')
  }
  return list
}

function contains(list: BlockList, address: string): boolean {
  return list.check(address.split('%')[0] ?? address, familyOf(address))
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv4(address) ? 'ipv4' : 'ipv6'
}

/** Read anew for every connection, since interfaces come and go. */
function isOwnAddress(address: string): boolean {
  const own = new BlockList()
  for (const found of Object.values(networkInterfaces()))
    for (const { address: one } of found ?? []) own.addAddress(one.split('%')[0] ?? one, familyOf(one))
  return contains(own, address)
}
