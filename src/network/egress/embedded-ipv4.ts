// IPv4 addresses inside IPv6 ones: translators and tunnels deliver to the IPv4 address, so that one must be judged too.
import { isIPv6 } from 'node:net'

/**
 * The IPv4 addresses that an IPv6 address may stand for: IPv4-mapped, IPv4-compatible and IPv4-translated (RFC 4291, 7915), NAT64
 * (RFC 6052; with prefixes of all lengths in the range for local use, RFC 8215), 6to4 (RFC 3056), ISATAP (RFC 5214), Teredo (RFC 4380).
 * Empty for any other address.
 */
export function embeddedIpv4(address: string): string[] {
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
export function mappedIpv4(address: string): string | undefined {
  const words = wordsOf(address)
  const isMapped = words?.slice(0, 5).every((word) => word === 0) === true && words[5] === 0xffff
  return isMapped ? dotted(words[6] ?? 0, words[7] ?? 0) : undefined
}

/** By the length of the prefix in bits: which bytes are the IPv4 address, and how many bytes after it are zero (RFC 6052, 2.2). */
const nat64Forms: readonly { readonly bytes: readonly number[]; readonly zeroFrom: number }[] = [
  { bytes: [6, 7, 9, 10], zeroFrom: 11 },
  { bytes: [7, 9, 10, 11], zeroFrom: 12 },
  { bytes: [9, 10, 11, 12], zeroFrom: 13 },
  { bytes: [12, 13, 14, 15], zeroFrom: 16 },
]

/** In all forms that the address fits. No translator delivers to 0.0.0.0/8, so what reads like that has another form. */
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
