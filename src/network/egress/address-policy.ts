// The addresses that calls caused by tenants' data may reach. Addresses that could be this machine, the host cluster or
// a cloud's metadata service are denied unless the operator of the installation allows them.
import { Resolver } from 'node:dns/promises'
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { EgressError } from './egress-error.ts'

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
  // Ranges of translators and tunnels: even if they are allowed, the embedded IPv4 address is checked.
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
      // Checks the address and the embedded ones: a range of 6to4 or NAT64 may be denied as such. `::` and `::1` only
      // have the form of embedded addresses.
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

/** Whether the address belongs to this machine. Reads the interfaces for every connection, because they change. */
function isOwnAddress(address: string): boolean {
  const own = new BlockList()
  for (const found of Object.values(networkInterfaces()))
    for (const { address: one } of found ?? []) own.addAddress(one.split('%')[0] ?? one, familyOf(one))
  return contains(own, address)
}

/**
 * The IPv4 addresses that an IPv6 address may stand for: translators and tunnels deliver to the IPv4 address, so the
 * IPv4 address must be checked, too. The forms: IPv4-mapped, IPv4-compatible and IPv4-translated (RFC 4291, 7915),
 * NAT64 (RFC 6052; with prefixes of all lengths in the range for local use, RFC 8215), 6to4 (RFC 3056), ISATAP (RFC
 * 5214), Teredo (RFC 4380). Empty for any other address.
 */
function embeddedIpv4(address: string): string[] {
  const words = wordsOf(address)
  if (words === undefined) return []
  const [w0 = 0, w1 = 0, w2 = 0, w3 = 0, w4 = 0, w5 = 0, w6 = 0, w7 = 0] = words
  const found: string[] = []
  const isZeroUpTo = (end: number): boolean => words.slice(0, end).every((word) => word === 0)
  const isMapped = isZeroUpTo(5) && (w5 === 0 || w5 === 0xffff)
  const isTranslated = isZeroUpTo(4) && w4 === 0xffff && w5 === 0
  const isNat64 = w0 === 0x64 && w1 === 0xff9b && w2 === 0 && w3 === 0 && w4 === 0 && w5 === 0
  const isIsatap = (w4 & 0xfdff) === 0 && w5 === 0x5efe
  if (isMapped || isTranslated || isNat64 || isIsatap) found.push(dotted(w6, w7))
  if (w0 === 0x2002) found.push(dotted(w1, w2))
  if (w0 === 0x64 && w1 === 0xff9b && w2 === 1) found.push(...localNat64(words))
  // The address of the client has all bits inverted.
  if (w0 === 0x2001 && w1 === 0) found.push(dotted(w6 ^ 0xffff, w7 ^ 0xffff))
  return found
}

/** The IPv4 address in an IPv4-mapped one; undefined if it is none. */
function mappedIpv4(address: string): string | undefined {
  const words = wordsOf(address)
  const isMapped = words?.slice(0, 5).every((word) => word === 0) === true && words[5] === 0xffff
  return isMapped ? dotted(words[6] ?? 0, words[7] ?? 0) : undefined
}

/**
 * By the length of the prefix in bits: which bytes are the IPv4 address, and how many bytes after it are zero (RFC
 * 6052, 2.2).
 */
const nat64Forms: readonly { readonly bytes: readonly number[]; readonly zeroFrom: number }[] = [
  { bytes: [6, 7, 9, 10], zeroFrom: 11 },
  { bytes: [7, 9, 10, 11], zeroFrom: 12 },
  { bytes: [9, 10, 11, 12], zeroFrom: 13 },
  { bytes: [12, 13, 14, 15], zeroFrom: 16 },
]

/**
 * The embedded IPv4 addresses in all forms that the address fits. No translator delivers to 0.0.0.0/8, so forms with
 * such an address are left out.
 */
function localNat64(words: readonly number[]): string[] {
  const all = words.flatMap((word) => [word >> 8, word & 0xff])
  return nat64Forms
    .filter(({ zeroFrom }) => all.slice(zeroFrom).every((byte) => byte === 0))
    .map(({ bytes }) => bytes.map((index) => all[index] ?? 0))
    .filter(([first]) => first !== 0)
    .map((bytes) => bytes.join('.'))
}

function dotted(high: number, low: number): string {
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.')
}

/** The eight 16-bit words; undefined if it is not an IPv6 address. A zone (`%eth0`) is ignored. */
function wordsOf(address: string): number[] | undefined {
  if (!isIPv6(address)) return undefined
  const [bare = ''] = address.split('%')
  const [head = '', tail] = bare.split('::')
  const left = words(head)
  if (tail === undefined) return left
  const right = words(tail)
  return [...left, ...new Array<number>(8 - left.length - right.length).fill(0), ...right]
}

function words(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((part) => {
    if (!part.includes('.')) return [Number.parseInt(part, 16)]
    const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number)
    return [a * 256 + b, c * 256 + d]
  })
}

/** Maximum number of addresses tried for one name. */
const maxAddresses = 4

export type ResolveHost = (host: string, signal: AbortSignal) => Promise<readonly string[]>

/**
 * Resolves names with these name servers (default: those of this machine), through c-ares: the resolver of the C
 * library would block one of the few threads that also read files, for as long as a tenant's name server likes. The
 * result has IPv4 addresses first. Rejects with EgressError for a name that has no address, with signal.reason when
 * aborted.
 */
export function createResolveHost({ servers }: { servers?: readonly string[] } = {}): ResolveHost {
  return async (host, signal) => {
    const bare = host.replace(/^\[|\]$/g, '')
    if (isIP(bare) !== 0) return [bare]
    // RFC 6761: these names never leave the machine.
    if (/(^|\.)localhost\.?$/i.test(bare)) return ['127.0.0.1', '::1']
    const resolver = new Resolver({ timeout: 2000, tries: 2 })
    if (servers !== undefined) resolver.setServers([...servers])
    const cancel = (): void => resolver.cancel()
    signal.addEventListener('abort', cancel, { once: true })
    try {
      const found = await Promise.allSettled([resolver.resolve4(bare), resolver.resolve6(bare)])
      signal.throwIfAborted()
      const addresses = found.flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
      if (addresses.length > 0) return addresses.slice(0, maxAddresses)
      const why = found.find((result) => result.status === 'rejected')?.reason as NodeJS.ErrnoException | undefined
      const text = why?.code === 'ETIMEOUT' ? 'i/o timeout' : 'no such host'
      throw new EgressError(`dial tcp: lookup ${bare}: ${text}`, { cause: why })
    } finally {
      signal.removeEventListener('abort', cancel)
    }
  }
}
