// Encryption of payloads, bound to their object keys: the plain values must stay hidden from readers of the database
// and of the host's Records.
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { StoreError, type ObjectKey } from './store.ts'

const algorithm = 'aes-256-gcm'
const ivLength = 12
const tagLength = 16
/** Maximum size of an opened payload: far above any object, and a bound on the cost of a forged Record. */
const maxOpenedBytes = 64 * 1024 * 1024

export interface SealOptions {
  /** Whether to compress before encryption, which takes longer than everything else. Default true. */
  readonly compress?: boolean
  /** Former and future keys: they open the payloads that they sealed, but seal none here. */
  readonly otherKeys?: readonly Uint8Array[]
}

/** Seals with the installation's key: 32 random bytes in a Secret of its own. */
export class Seal {
  readonly #key: Uint8Array
  /** All keys that open, by id. */
  readonly #keys: ReadonlyMap<string, Uint8Array>
  readonly #compress: boolean
  /**
   * Id of the key, which reveals nothing about it. It is written with every payload, so that a wrong key is reported as
   * such and not as damage.
   */
  readonly keyId: string

  constructor(key: Uint8Array, { compress = true, otherKeys = [] }: SealOptions = {}) {
    this.#key = key
    this.#keys = new Map([...otherKeys, key].map((one) => [keyIdOf(one), one]))
    this.#compress = compress
    this.keyId = keyIdOf(key)
  }

  /** True for a sealed text that another key than the one in use has sealed. */
  isOfOtherKey(text: string): boolean {
    return !text.startsWith(`${this.keyId}:`)
  }

  /** Whether it opens what the key of this id has sealed. */
  opens(keyId: string): boolean {
    return this.#keys.has(keyId)
  }

  /** Encrypts; the text opens only with this key and only as the object of this ObjectKey. */
  close(key: ObjectKey, value: Uint8Array): string {
    const iv = randomBytes(ivLength)
    const cipher = createCipheriv(algorithm, this.#key, iv).setAAD(bound(key))
    const body = Buffer.concat([cipher.update(this.#compress ? deflateRawSync(value) : value), cipher.final()])
    return `${this.keyId}:${Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64')}`
  }

  /** Decrypts. Throws StoreError Unavailable for another key, another object's payload, or damage. */
  open(of: ObjectKey, text: string): Uint8Array {
    const colon = text.indexOf(':')
    const what = `what is stored as "${of.resource}/${of.namespace}/${of.name}" in "${of.cluster}"`
    const key = this.#keys.get(text.slice(0, colon))
    if (key === undefined) throw new StoreError('Unavailable', `${what} was sealed with another key`)
    const sealed = Buffer.from(text.slice(colon + 1), 'base64')
    try {
      const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, ivLength), {
        authTagLength: tagLength,
      })
      decipher.setAAD(bound(of)).setAuthTag(sealed.subarray(ivLength, ivLength + tagLength))
      const body = Buffer.concat([decipher.update(sealed.subarray(ivLength + tagLength)), decipher.final()])
      return this.#compress ? inflateRawSync(body, { maxOutputLength: maxOpenedBytes }) : body
    } catch (error) {
      throw new StoreError('Unavailable', `${what} was changed by somebody else: its seal is broken`, { cause: error })
    }
  }
}

/** The id of a key. Throws StoreError Unavailable if the key is not 32 bytes long. */
function keyIdOf(key: Uint8Array): string {
  if (key.length !== 32) throw new StoreError('Unavailable', `the sealing key has ${key.length} bytes, not 32`)
  return createHash('sha256').update('kcp.dev/seal').update(key).digest('hex').slice(0, 8)
}

function bound({ cluster, resource, namespace, name }: ObjectKey): Buffer {
  return Buffer.from([cluster, resource, namespace, name].join('\0'))
}

/** Secrets: of tenants, and those of the installation, such as kubeconfigs of members. */
export const sealedResource = 'secrets'
// JSON begins with `{` or is `null`.
const sealedPrefix = Buffer.from('sealed:')

/** The form of `value` at rest. */
export function sealedValue(seal: Seal, key: ObjectKey, value: Uint8Array): Uint8Array {
  return key.resource === sealedResource ? Buffer.concat([sealedPrefix, Buffer.from(seal.close(key, value))]) : value
}

/**
 * The value as it was written. Throws StoreError Unavailable for a value that was not sealed with this key for this
 * object.
 */
export function openedValue(seal: Seal, key: ObjectKey, stored: Uint8Array): Uint8Array {
  if (key.resource !== sealedResource) return stored
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength)
  if (!bytes.subarray(0, sealedPrefix.length).equals(sealedPrefix))
    throw new StoreError('Unavailable', `what is stored as "${key.resource}/${key.name}" is not sealed`)
  return seal.open(key, bytes.toString('latin1', sealedPrefix.length))
}
