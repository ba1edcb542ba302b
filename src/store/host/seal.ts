// Seals payloads that host users with access to Records must not read: compressed, then encrypted and bound to their
// key.
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { StoreError, type ObjectKey } from '../store.ts'

const algorithm = 'aes-256-gcm'
const ivLength = 12
const tagLength = 16
/** Maximum size of an opened payload: far above any object, and a bound on the cost of a forged Record. */
const maxOpenedBytes = 64 * 1024 * 1024

/** Seals with the installation's key: 32 random bytes in a Secret of its own. */
export class Seal {
  readonly #key: Uint8Array
  /** Stored with every payload, so that a wrong key is not reported as damage. */
  readonly #keyId: string

  constructor(key: Uint8Array) {
    if (key.length !== 32) throw new StoreError('Unavailable', `the sealing key has ${key.length} bytes, not 32`)
    this.#key = key
    this.#keyId = createHash('sha256').update('kcp.dev/seal').update(key).digest('hex').slice(0, 8)
  }

  /** Encrypts; the text opens only with this key and only as the object of this ObjectKey. */
  close(key: ObjectKey, value: Uint8Array): string {
    const iv = randomBytes(ivLength)
    const cipher = createCipheriv(algorithm, this.#key, iv).setAAD(bound(key))
    const body = Buffer.concat([cipher.update(deflateRawSync(value)), cipher.final()])
    return `${this.#keyId}:${Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64')}`
  }

  /** Decrypts. Throws StoreError Unavailable for another key, another object's payload, or damage. */
  open(key: ObjectKey, text: string): Uint8Array {
    const colon = text.indexOf(':')
    const what = `the Record of "${key.resource}/${key.namespace}/${key.name}" in "${key.cluster}"`
    if (text.slice(0, colon) !== this.#keyId) throw new StoreError('Unavailable', `${what} was sealed with another key`)
    const sealed = Buffer.from(text.slice(colon + 1), 'base64')
    try {
      const decipher = createDecipheriv(algorithm, this.#key, sealed.subarray(0, ivLength), {
        authTagLength: tagLength,
      })
      decipher.setAAD(bound(key)).setAuthTag(sealed.subarray(ivLength, ivLength + tagLength))
      const body = Buffer.concat([decipher.update(sealed.subarray(ivLength + tagLength)), decipher.final()])
      return inflateRawSync(body, { maxOutputLength: maxOpenedBytes })
    } catch (error) {
      throw new StoreError('Unavailable', `${what} was changed by somebody else: its seal is broken`, { cause: error })
    }
  }
}

function bound({ cluster, resource, namespace, name }: ObjectKey): Buffer {
  return Buffer.from([cluster, resource, namespace, name].join('\0'))
}
