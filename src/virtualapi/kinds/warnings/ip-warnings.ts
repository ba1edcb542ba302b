// Addresses in forms of old: taken, and told of.
import { goQuote } from '../../../apimachinery/text/index.ts'
import { cidrText, ipText, tryCidr, tryIp } from '../validation/ip-values.ts'

/** What to tell of the form of an address at `path`; nothing of text that is none. */
export function ipWarnings(path: string, text: string): string[] {
  const ip = tryIp(text)
  if (ip === undefined) return []
  const good = ipText(ip)
  if (ip.odd !== undefined)
    return [
      `${path}: non-standard IP address ${goQuote(text)} will be considered invalid in a future Kubernetes release: use "${good}"`,
    ]
  return ip.family === 6 && good !== text
    ? [`${path}: IPv6 address ${goQuote(text)} should be in RFC 5952 canonical format ("${good}")`]
    : []
}

/** What to tell of the form of a CIDR at `path`; nothing of text that is none. */
export function cidrWarnings(path: string, text: string): string[] {
  const cidr = tryCidr(text)
  // A mapped address with a part of its prefix open is none of IPv4.
  if (cidr === undefined || cidr.bits < 0) return []
  const { ip, network } = cidr
  const good = cidrText(cidr)
  const warnings: string[] = []
  if (network !== ip.value) {
    const single = `${ipText(ip)}/${text.includes(':') ? 128 : 32}`
    warnings.push(
      `${path}: CIDR value ${goQuote(text)} is ambiguous in this context (should be "${good}" or "${single}"?)`,
    )
  }
  if (cidr.leadingZeros || ip.odd === 'mapped')
    warnings.push(
      `${path}: non-standard CIDR value ${goQuote(text)} will be considered invalid in a future Kubernetes release: use "${good}"`,
    )
  if (warnings.length === 0 && ip.family === 6 && good !== text)
    warnings.push(`${path}: IPv6 CIDR value ${goQuote(text)} should be in RFC 5952 canonical format ("${good}")`)
  return warnings
}
