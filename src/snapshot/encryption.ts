// Encryption of snapshots in the format of age (age-encryption.org/v1), which its own tools read, too.
import { Readable } from 'node:stream'
import { Decrypter, Encrypter } from 'age-encryption'
import { SnapshotError, withHead } from './format.ts'

const magic = Buffer.from('age-encryption.org/v1')

/** The bytes encrypted for these recipients (`age1...`). Throws SnapshotError for a text that is no recipient. */
export async function encrypted(bytes: Readable, recipients: readonly string[]): Promise<Readable> {
  const encrypter = new Encrypter()
  for (const recipient of recipients) {
    try {
      encrypter.addRecipient(recipient)
    } catch (error) {
      throw new SnapshotError(`${JSON.stringify(recipient)} is not a recipient of age (age1...)`, { cause: error })
    }
  }
  return asNode(await encrypter.encrypt(asWeb(bytes)))
}

/**
 * The bytes as they were before they were encrypted; bytes that are not encrypted stay as they are. `identities`: secret
 * keys (AGE-SECRET-KEY-1...). Rejects with SnapshotError if none of them fits.
 */
export async function decrypted(bytes: AsyncIterable<Uint8Array>, identities: readonly string[]): Promise<Readable> {
  const { head, bytes: again } = await withHead(bytes, magic.length)
  if (!head.equals(magic)) return again
  if (identities.length === 0) throw new SnapshotError('it is encrypted: --identity FILE names the file with the key')
  const decrypter = new Decrypter()
  for (const identity of identities) {
    try {
      decrypter.addIdentity(identity)
    } catch (error) {
      throw new SnapshotError('the file with the key has no key of age (AGE-SECRET-KEY-1...)', { cause: error })
    }
  }
  try {
    return asNode(await decrypter.decrypt(asWeb(again)))
  } catch (error) {
    throw new SnapshotError(`it cannot be decrypted with this key: ${(error as Error).message}`, { cause: error })
  }
}

/** The secret keys in the text of a file as `age-keygen` writes it. */
export function identitiesIn(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
}

function asWeb(bytes: Readable): ReadableStream<Uint8Array> {
  return Readable.toWeb(bytes)
}

function asNode(stream: ReadableStream<Uint8Array>): Readable {
  return Readable.fromWeb(stream)
}
