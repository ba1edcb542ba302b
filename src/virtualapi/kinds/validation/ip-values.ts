// Parses, prints and validates IP addresses and CIDRs. As in Go, `::ffff:1.2.3.4` is an IPv4 address. Older API fields
// also accept leading zeros.
import { isIPv6 } from 'node:net'
import { parseAddress, printAddress } from '#apimachinery/text/index.ts'
import { must, type Rule } from './vocabulary.ts'

/** A parsed address. */
export interface Ip {
  readonly family: 4 | 6
  readonly value: bigint
  /** The reason why strict parsers refuse the text; undefined if they accept it. */
  readonly odd: 'leading zeros' | 'mapped' | undefined
}

/** A parsed CIDR. */
export interface Cidr {
  readonly ip: Ip
  readonly bits: number
  /** The address with all bits beyond the prefix cleared. */
  readonly network: bigint
  readonly leadingZeros: boolean
}

const maxTextLength = 64
const noIp = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'
const noCidr = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'

/** Parses an address; undefined if the text is not an address. */
export function tryIp(text: string): Ip | undefined {
  if (text.length > maxTextLength) return undefined
  if (!text.includes(':')) return tryIpv4(text)
  if (!isIPv6(text) || text.includes('%')) return undefined
  const { value } = parseAddress(text)
  return value >> 32n === 0xffffn
    ? { family: 4, value: value & 0xffff_ffffn, odd: 'mapped' }
    : { family: 6, value, odd: undefined }
}

function tryIpv4(text: string): Ip | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^\d+$/.test(part) && Number(part) <= 255)) return undefined
  const value = parts.reduce((sum, part) => sum * 256 + Number(part), 0)
  const zeros = parts.some((part) => part.length > 1 && part.startsWith('0'))
  return { family: 4, value: BigInt(value), odd: zeros ? 'leading zeros' : undefined }
}

/** The canonical text of an address (RFC 5952). */
export function ipText({ family, value }: Pick<Ip, 'family' | 'value'>): string {
  return printAddress({ bits: family === 4 ? 32 : 128, value, zone: '' })
}

/** Parses a CIDR; undefined if the text is not a CIDR. Bits beyond the prefix may be set. */
export function tryCidr(text: string): Cidr | undefined {
  const [address = '', length = '', ...rest] = text.split('/', 3)
  const ip = tryIp(address)
  if (ip === undefined || rest.length > 0 || !/^\d{1,8}$/.test(length)) return undefined
  const size = address.includes(':') ? 128 : 32
  const given = Number(length)
  if (given > size) return undefined
  const bits = ip.odd === 'mapped' ? given - 96 : given
  const width = BigInt(ip.family === 4 ? 32 - bits : 128 - bits)
  const zeros = ip.odd === 'leading zeros' || (length.length > 1 && length.startsWith('0'))
  return { ip, bits, network: (ip.value >> width) << width, leadingZeros: zeros }
}

/** The canonical text of a CIDR, with the bits beyond the prefix cleared. */
export function cidrText({ ip, bits, network }: Cidr): string {
  return `${ipText({ family: ip.family, value: network })}/${bits}`
}

/** True if `inner` is a proper subset of `outer`. */
export function isStrictlyInside(inner: Cidr, outer: Cidr): boolean {
  if (inner.ip.family !== outer.ip.family || inner.bits <= outer.bits) return false
  const width = BigInt((outer.ip.family === 4 ? 32 : 128) - outer.bits)
  return inner.network >> width === outer.network >> width
}

/** An address in an older field: any form is accepted. */
export const legacyIp = must((text: string) => tryIp(text) !== undefined, noIp)
/** A CIDR in an older field: any form is accepted. */
export const legacyCidr = must((text: string) => tryCidr(text) !== undefined, noCidr)

/** Errors for text that must be an address in canonical form. */
export function ipErrors(text: string): string[] {
  const ip = tryIp(text)
  if (ip === undefined) return [noIp]
  if (ip.odd === 'leading zeros') return ['must not have leading 0s']
  if (ip.odd === 'mapped') return ['must not be an IPv4-mapped IPv6 address']
  return ipText(ip) === text ? [] : [`must be in canonical form ("${ipText(ip)}")`]
}

/** Errors for text that must be a CIDR in canonical form. */
export function cidrErrors(text: string): string[] {
  const cidr = tryCidr(text)
  if (cidr === undefined) return [noCidr]
  if (cidr.leadingZeros) return ['must not have leading 0s in IP or prefix length']
  if (cidr.ip.odd === 'mapped') return ['must not have an IPv4-mapped IPv6 address']
  if (cidr.network !== cidr.ip.value) return ['must not have bits set beyond the prefix length']
  return cidrText(cidr) === text ? [] : [`must be in canonical form ("${cidrText(cidr)}")`]
}

/** An address of an endpoint or an external IP: special ranges are refused. */
export const endpointIp: Rule<string> = (text, report) => {
  const ip = tryIp(text)
  const wrong = ip === undefined ? 'must be a valid IP address' : specialRange(ip, text)
  if (wrong !== undefined) report.invalid('', text, wrong)
}

function specialRange({ family, value }: Ip, text: string): string | undefined {
  const top = (bits: bigint): bigint => value >> ((family === 4 ? 32n : 128n) - bits)
  if (value === 0n) return `may not be unspecified (${text})`
  if (family === 4 ? top(8n) === 127n : value === 1n) return 'may not be in the loopback range (127.0.0.0/8, ::1/128)'
  if (family === 4 ? top(16n) === 0xa9fen : top(10n) === 0x3fan)
    return 'may not be in the link-local range (169.254.0.0/16, fe80::/10)'
  const multicast = family === 4 ? top(24n) === 0xe00000n : top(8n) === 0xffn && (top(16n) & 0xfn) === 2n
  return multicast ? 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)' : undefined
}
