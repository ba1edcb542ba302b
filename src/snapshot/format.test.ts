import { expect } from 'chai'
import { Readable } from 'node:stream'
import { zstdCompressSync } from 'node:zlib'
import { generateIdentity, identityToRecipient } from 'age-encryption'
import { decrypted, encrypted } from './encryption.ts'
import { compressed, readSnapshot, tarOf, withVolumes, type SnapshotManifest, type WrittenPart } from './format.ts'

const about = {
  takenAt: '2026-01-02T03:04:05Z',
  program: '1.2.3',
  logicalCluster: { name: 'acme', id: 'a123456789', uid: 'u1' },
  revision: '42',
  initial: [],
  deleted: [],
}

describe('a snapshot file', () => {
  const part = (resource: string, texts: readonly string[]): WrittenPart => {
    const objects = texts.map((text) => Buffer.from(text))
    return { resource, count: objects.length, bytes: objects.reduce((sum, { length }) => sum + length, 0), objects }
  }
  const parts = [
    part('configmaps', ['{"a":1}', `{"b":"${'x'.repeat(200_000)}"}`]),
    part(
      'deployments.apps',
      Array.from({ length: 500 }, (_, i) => `{"kind":"Deployment","n":${i}}`),
    ),
  ]
  const tar = async (): Promise<Buffer> => Buffer.concat(await tarOf(about, parts, () => undefined).toArray())
  const read = async (bytes: Uint8Array | Readable) => {
    let manifest: SnapshotManifest | undefined
    const lines: string[] = []
    const source = bytes instanceof Readable ? bytes : Readable.from([bytes])
    for await (const item of readSnapshot(source)) {
      if ('manifest' in item) manifest = item.manifest
      else lines.push(`${item.resource} ${item.bytes.toString()}`)
    }
    return { manifest, lines }
  }
  const problemOf = async (bytes: Uint8Array): Promise<string> => {
    try {
      await read(bytes)
    } catch (error) {
      expect((error as Error).name, String(error)).to.equal('SnapshotError')
      return (error as Error).message
    }
    throw new Error('it was read without an error')
  }

  it('gives back what was written, compressed or not, in chunks of any size', async () => {
    const plain = await tar()
    const expected = parts.flatMap(({ resource, objects }) =>
      [...objects].map((bytes) => `${resource} ${Buffer.from(bytes).toString()}`),
    )
    const small = compressed(tarOf(about, parts, () => undefined))
    for (const bytes of [plain, zstdCompressSync(plain), small]) {
      const { manifest, lines } = await read(bytes)
      expect(lines).to.deep.equal(expected)
      expect(manifest).to.deep.include({ ...about, objects: 502, format: 'kcp.dev/snapshot', version: 1 })
    }
    const tiny = Readable.from(Array.from({ length: 5000 }, (_, i) => plain.subarray(i * 50, i * 50 + 50)))
    await read(tiny).catch(() => undefined)
    const rest = async function* () {
      for (let at = 0; at < plain.length; at += 777) yield plain.subarray(at, at + 777)
    }
    expect((await read(Readable.from(rest()))).lines).to.deep.equal(expected)
  })

  it('has the volumes that are written into its manifest, and fails if it was not whole before', async () => {
    const plain = await tar()
    const volume = { namespace: 'shop', claim: 'data', claimUid: 'u', state: 'Included', handle: 'h' } as const
    const chunks = Array.from({ length: Math.ceil(plain.length / 777) }, (_, i) =>
      plain.subarray(i * 777, i * 777 + 777),
    )
    const { manifest, lines } = await read(compressed(withVolumes(Readable.from(chunks), [volume])))
    expect(manifest).to.deep.include({ ...about, objects: 502, volumes: [volume] })
    expect(lines).to.deep.equal((await read(plain)).lines)
    const cut = withVolumes(Readable.from([plain.subarray(0, plain.length / 2)]), [volume])
    expect(await cut.toArray().catch((error: unknown) => error)).to.be.instanceOf(Error)
  })

  it('is refused wherever it is cut off', async () => {
    const plain = await tar()
    const packed = zstdCompressSync(plain)
    // The end of a tar archive is two empty blocks, which hold nothing.
    for (const whole of [plain.subarray(0, plain.length - 1024), packed])
      for (let at = 0; at < whole.length; at += Math.ceil(whole.length / 97))
        expect(await problemOf(whole.subarray(0, at)), `${at} bytes`).to.be.a('string')
  })

  it('is refused with any byte of its content changed', async () => {
    const plain = await tar()
    const { lines } = await read(plain)
    for (let at = 600; at < plain.length - 4096; at += 997) {
      const changed = Buffer.from(plain)
      changed[at] = (changed[at] ?? 0) ^ 1
      // Padding between files and times in headers hold nothing: a change there changes no object.
      const outcome = await read(changed).then(
        (found) => found.lines,
        () => 'refused',
      )
      if (outcome !== 'refused') expect(outcome, `byte ${at}`).to.deep.equal(lines)
    }
    const object = plain.indexOf('"n":250')
    plain.write('"n":251', object)
    expect(await problemOf(plain)).to.equal('objects/deployments.apps.ndjson was changed: its checksum differs')
  })

  it('is refused if it is something else, or of a later format', async () => {
    expect(await problemOf(Buffer.from('hello'))).to.match(/not a whole snapshot/)
    expect(await problemOf(Buffer.alloc(0))).to.match(/not a whole snapshot/)
    const later = await tar()
    later.write('"version": 9', later.indexOf('"version": 1'))
    expect(await problemOf(later)).to.match(/version 9; this kcp reads version 1: use the kcp that made it, 1.2.3/)
  })

  it('opens with the key of age that it was encrypted for, and with no other', async () => {
    const plain = await tar()
    const [own, other] = [await generateIdentity(), await generateIdentity()]
    const sealed = await (await encrypted(Readable.from([plain]), [await identityToRecipient(own)])).toArray()
    const open = async (keys: readonly string[]) => read(await decrypted(Readable.from(sealed), keys))
    expect((await open([own])).lines).to.have.length(502)
    expect((await open([other, own])).lines).to.have.length(502)
    expect(await open([]).catch(String)).to.match(/it is encrypted: --identity FILE/)
    expect(await open([other]).catch(String)).to.match(/cannot be decrypted with this key/)
    expect(await encrypted(Readable.from([plain]), ['age1x']).catch(String)).to.match(/"age1x" is not a recipient/)
  })
})
