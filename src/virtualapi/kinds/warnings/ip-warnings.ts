// Warnings about IP addresses and CIDRs in forms that are still accepted but discouraged.
import { goQuote } from '#apimachinery/text/index.ts'
import { cidrText, ipText, tryCidr, tryIp } from '#virtualapi/kinds/validation/ip-values.ts'

/** Warnings about the form of an address at `path`; none if the text is not an address. */
export function ipWarnings(path: string, text: string): string[] {
  const ip = tryIp(text)
  if (ip === undefined) return []
  const canonical = ipText(ip)
  if (ip.odd !== undefined)
    return [
      `${path}: non-standard IP address ${goQuote(text)} will be considered invalid in a future Kubernetes release: use "${canonical}"`,
    ]
  return ip.family === 6 && canonical !== text
    ? [`${path}: IPv6 address ${goQuote(text)} should be in RFC 5952 canonical format ("${canonical}")`]
    : []
}

/** Warnings about the form of a CIDR at `path`; none if the text is not a CIDR. */
export function cidrWarnings(path: string, text: string): string[] {
  const cidr = tryCidr(text)
  // An IPv4-mapped CIDR with a prefix of less than 96 bits has no IPv4 form.
  if (cidr === undefined || cidr.bits < 0) return []
  const { ip, network } = cidr
  const canonical = cidrText(cidr)
  const warnings: string[] = []
  if (network !== ip.value) {
    const single = `${ipText(ip)}/${text.includes(':') ? 128 : 32}`
    warnings.push(
      `${path}: CIDR value ${goQuote(text)} is ambiguous in this context (should be "${canonical}" or "${single}"?)`,
    )
  }
  if (cidr.leadingZeros || ip.odd === 'mapped')
    warnings.push(
      `${path}: non-standard CIDR value ${goQuote(text)} will be considered invalid in a future Kubernetes release: use "${canonical}"`,
    )
  if (warnings.length === 0 && ip.family === 6 && canonical !== text)
    warnings.push(`${path}: IPv6 CIDR value ${goQuote(text)} should be in RFC 5952 canonical format ("${canonical}")`)
  return warnings
}
