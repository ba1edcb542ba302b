// Validates the certificate chain that a signer puts into the status.
import { X509Certificate } from 'node:crypto'
import { goQuote } from '#apimachinery/text/index.ts'
import { pemBlocks } from './pem.ts'

/** The reason why `pem` is not a chain of certificates; undefined if it is a chain. */
export function certificateChainError(pem: string): string | undefined {
  let blocks = 0
  for (const { type, hasHeaders, bytes } of pemBlocks(pem)) {
    if (type !== 'CERTIFICATE') return `only CERTIFICATE PEM blocks are allowed, found ${goQuote(type)}`
    if (hasHeaders) return 'no PEM block headers are permitted'
    blocks++
    try {
      new X509Certificate(bytes)
    } catch {
      return bytes.length === 0
        ? 'found CERTIFICATE PEM block containing 0 certificates'
        : 'x509: malformed certificate'
    }
  }
  return blocks === 0 ? 'must contain at least one CERTIFICATE PEM block' : undefined
}
