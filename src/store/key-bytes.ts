// ObjectKeys as bytes: `PREFIX` CLUSTER `\0` RESOURCE `\0` NAMESPACE `\0` NAME. No part but the name contains a zero byte, which
// sorts before all else, so the order of the bytes is the order of ObjectKeys.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { ListScope, ObjectKey } from '#store/store.ts'

/** From `start` to before `end`. */
export interface KeyRange {
  readonly start: Buffer
  readonly end: Buffer
}

const surrogate = /[\ud800-\udfff]/
const utf8Surrogate = Buffer.from([0xed])

export class KeyBytes {
  readonly #prefix: string
  /** All objects. */
  readonly all: KeyRange

  /** @param prefix ASCII, not empty */
  constructor(prefix: string) {
    this.#prefix = prefix
    this.all = rangeOf(Buffer.from(prefix))
  }

  key({ cluster, resource, namespace, name }: ObjectKey): Buffer {
    return encoded(`${this.#prefix}${cluster}\0${resource}\0${namespace}\0${name}`)
  }

  /** The key after this one. */
  after(key: Buffer): Buffer {
    return Buffer.concat([key, Buffer.from([0])])
  }

  /** The range of a scope that names its logical cluster, or names nothing. */
  range({ cluster, resource, namespace }: ListScope): KeyRange {
    if (cluster === undefined) return this.all
    const parts = [
      cluster,
      ...(resource === undefined ? [] : [resource, ...(namespace === undefined ? [] : [namespace])]),
    ]
    return rangeOf(encoded(`${this.#prefix}${parts.map((part) => `${part}\0`).join('')}`))
  }

  /** The ObjectKey of a key; undefined if it is none. */
  parse(key: Buffer): ObjectKey | undefined {
    const text = decoded(key)
    if (!text.startsWith(this.#prefix)) return undefined
    const parts = text.slice(this.#prefix.length).split('\0')
    const [cluster, resource, namespace] = parts
    // Some kinds allow a zero byte in names.
    const name = parts.slice(3).join('\0')
    if (!cluster || !resource || namespace === undefined || name === '') return undefined
    return { cluster: cluster as ClusterId, resource, namespace, name }
  }
}

/** All keys that begin with the prefix, which must not end in a byte of 255. */
function rangeOf(prefix: Buffer): KeyRange {
  const end = Buffer.from(prefix)
  const last = end.length - 1
  end[last] = (end[last] ?? 0) + 1
  return { start: prefix, end }
}

/**
 * UTF-8, but characters outside the basic plane as two surrogates of three bytes (CESU-8, Unicode Technical Report 26):
 * this has the order of UTF-16.
 */
function encoded(text: string): Buffer {
  if (!surrogate.test(text)) return Buffer.from(text)
  const parts: Buffer[] = []
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    const isSurrogate = unit >= 0xd800 && unit <= 0xdfff
    parts.push(
      isSurrogate
        ? Buffer.from([0xed, 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f)])
        : Buffer.from(text[at] ?? ''),
    )
  }
  return Buffer.concat(parts)
}

function decoded(key: Buffer): string {
  if (!key.includes(utf8Surrogate)) return key.toString()
  let text = ''
  let from = 0
  for (let at = 0; at < key.length; at++) {
    if (key[at] !== 0xed || (key[at + 1] ?? 0) < 0xa0) continue
    text += key.toString('utf8', from, at)
    text += String.fromCharCode(0xd000 | (((key[at + 1] ?? 0) & 0x3f) << 6) | ((key[at + 2] ?? 0) & 0x3f))
    at += 2
    from = at + 1
  }
  return text + key.toString('utf8', from)
}
