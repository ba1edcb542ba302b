// node:crypto for the browser: the SHA-256 by which scheduler and members compare specs.
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'

interface Hash {
  update(data: string | Uint8Array): Hash
  digest(): Uint8Array
  digest(encoding: 'hex' | 'base64' | 'base64url'): string
}

export function createHash(algorithm: string): Hash {
  if (algorithm !== 'sha256') throw new Error(`"${algorithm}" is not available in the browser`)
  const hash = sha256.create()
  const wrapper = {
    update(data: string | Uint8Array): Hash {
      hash.update(typeof data === 'string' ? new TextEncoder().encode(data) : data)
      return wrapper as Hash
    },
    digest(encoding?: string): Uint8Array | string {
      const bytes = hash.digest()
      if (encoding === undefined) return bytes
      if (encoding === 'hex') return bytesToHex(bytes)
      const base64 = btoa(String.fromCharCode(...bytes))
      return encoding === 'base64' ? base64 : base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
    },
  }
  return wrapper as Hash
}

/** Imported beside functions that the console uses, and never called there. */
export const X509Certificate = undefined
export const randomUUID = (): string => crypto.randomUUID()
