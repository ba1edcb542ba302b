// IP addresses and networks as net/netip reads and prints them.
import { goQuote } from './go-text.ts'

export interface Address {
  readonly bits: 32 | 128
  readonly value: bigint
  readonly zone: string
}

export interface Network {
  readonly address: Address
  readonly length: number
}

const failure = (text: string, why: string, at?: string): Error =>
  new Error(`ParseAddr(${goQuote(text)}): ${why}${at === undefined ? '' : ` (at ${goQuote(at)})`}`)

/** Reads an address. Throws an Error in netip's words. */
export function parseAddress(text: string): Address {
  for (const char of text) {
    if (char === '.') return { bits: 32, value: parseV4(text, text), zone: '' }
    if (char === ':') return parseV6(text)
    if (char === '%') throw failure(text, 'missing IPv6 address')
  }
  throw failure(text, 'unable to parse IP')
}

function parseV4(part: string, whole: string): bigint {
  let value = 0n
  let field = 0
  let digits = 0
  let count = 0
  for (const [i, char] of Array.from(part).entries()) {
    const digit = char.charCodeAt(0) - 48
    if (char >= '0' && char <= '9') {
      if (digits === 1 && field === 0) throw failure(whole, 'IPv4 field has octet with leading zero')
      field = field * 10 + digit
      digits += 1
      if (field > 255) throw failure(whole, 'IPv4 field has value >255')
    } else if (char === '.') {
      if (i === 0 || i === part.length - 1 || part[i - 1] === '.')
        throw failure(whole, 'IPv4 field must have at least one digit', part.slice(i))
      if (count === 3) throw failure(whole, 'IPv4 address too long')
      value = value * 256n + BigInt(field)
      count += 1
      field = 0
      digits = 0
    } else throw failure(whole, 'unexpected character', part.slice(i))
  }
  if (count < 3) throw failure(whole, 'IPv4 address too short')
  return value * 256n + BigInt(field)
}

function parseV6(text: string): Address {
  const percent = text.indexOf('%')
  const zone = percent < 0 ? '' : text.slice(percent + 1)
  if (percent >= 0 && zone === '') throw failure(text, 'zone must be a non-empty string')
  let rest = percent < 0 ? text : text.slice(0, percent)
  const bytes: number[] = []
  let ellipsis = -1
  if (rest.startsWith('::')) {
    ellipsis = 0
    rest = rest.slice(2)
  }
  while (bytes.length < 16 && rest !== '') {
    const field = /^[0-9a-fA-F]*/.exec(rest)?.[0] ?? ''
    if (field.length > 4) throw failure(text, 'each group must have 4 or less digits', rest)
    if (field === '') throw failure(text, 'each colon-separated field must have at least one digit', rest)
    if (rest[field.length] === '.') {
      if (ellipsis < 0 && bytes.length !== 12)
        throw failure(text, 'embedded IPv4 address must replace the final 2 fields of the address', rest)
      if (bytes.length + 4 > 16)
        throw failure(text, 'too many hex fields to fit an embedded IPv4 at the end of the address', rest)
      const v4 = parseV4(rest, text)
      for (const shift of [24n, 16n, 8n, 0n]) bytes.push(Number((v4 >> shift) & 255n))
      rest = ''
      break
    }
    const number = Number.parseInt(field, 16)
    bytes.push(number >> 8, number & 255)
    rest = rest.slice(field.length)
    if (rest === '') break
    if (!rest.startsWith(':')) throw failure(text, 'unexpected character, want colon', rest)
    if (rest.length === 1) throw failure(text, 'colon must be followed by more characters', rest)
    rest = rest.slice(1)
    if (!rest.startsWith(':')) continue
    if (ellipsis >= 0) throw failure(text, 'multiple :: in address', rest)
    ellipsis = bytes.length
    rest = rest.slice(1)
  }
  if (rest !== '') throw failure(text, 'trailing garbage after address', rest)
  if (bytes.length < 16) {
    if (ellipsis < 0) throw failure(text, 'address string too short')
    bytes.splice(ellipsis, 0, ...new Array<number>(16 - bytes.length).fill(0))
  } else if (ellipsis >= 0) throw failure(text, 'the :: must expand to at least one field of zeros')
  return { bits: 128, value: bytes.reduce((value, byte) => value * 256n + BigInt(byte), 0n), zone }
}

/** True for `::ffff:1.2.3.4`. */
export const isMappedV4 = ({ bits, value }: Address): boolean => bits === 128 && value >> 32n === 0xffffn

/** The canonical text of an address. */
export function printAddress(address: Address): string {
  const { bits, value, zone } = address
  if (bits === 32) return printV4(value)
  const suffix = zone === '' ? '' : `%${zone}`
  if (isMappedV4(address)) return `::ffff:${printV4(value & 0xffff_ffffn)}${suffix}`
  const groups = Array.from({ length: 8 }, (_, i) => Number((value >> BigInt(112 - 16 * i)) & 0xffffn))
  const { start, length } = longestZeros(groups)
  const hex = (part: readonly number[]): string => part.map((group) => group.toString(16)).join(':')
  if (length < 2) return hex(groups) + suffix
  return `${hex(groups.slice(0, start))}::${hex(groups.slice(start + length))}${suffix}`
}

const printV4 = (value: bigint): string => [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 255n)).join('.')

function longestZeros(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 }
  for (let start = 0; start < groups.length; start++) {
    let end = start
    while (end < groups.length && groups[end] === 0) end += 1
    if (end - start > best.length) best = { start, length: end - start }
  }
  return best
}

/** Reads a network. Throws an Error in netip's words. */
export function parseNetwork(text: string): Network {
  const fail = (why: string): Error => new Error(`netip.ParsePrefix(${goQuote(text)}): ${why}`)
  const slash = text.lastIndexOf('/')
  if (slash < 0) throw fail("no '/'")
  let address: Address
  try {
    address = parseAddress(text.slice(0, slash))
  } catch (error) {
    throw fail(error instanceof Error ? error.message : '')
  }
  if (address.zone !== '') throw fail('IPv6 zones cannot be present in a prefix')
  const digits = text.slice(slash + 1)
  if (!/^(?:0|[1-9]\d*)$/.test(digits)) throw fail(`bad bits after slash: ${goQuote(digits)}`)
  if (Number(digits) > address.bits) throw fail('prefix length out of range')
  return { address, length: Number(digits) }
}

/** The network with all bits beyond its length cleared. */
export function maskNetwork({ address, length }: Network): Network {
  const free = BigInt(address.bits - length)
  return { address: { ...address, value: (address.value >> free) << free }, length }
}

/** True if the first bits of both addresses, of the same family, are the same. */
export function sharesPrefix(a: Address, b: Address, length: number): boolean {
  const free = BigInt(a.bits - length)
  return a.bits === b.bits && a.value >> free === b.value >> free
}
