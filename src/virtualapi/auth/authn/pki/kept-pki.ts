// Stores an installation's keys in a directory (embedded mode) or in a Secret of the host.
import { randomBytes, X509Certificate, createPrivateKey } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock, type Clock } from '#async/index.ts'
import type { KeyPair } from '#network/certificates/index.ts'
import { createPki, createPkiMaterial, type Pki, type PkiMaterial } from './pki.ts'

const names = ['client-ca.crt', 'client-ca.key', 'serving-ca.crt', 'serving-ca.key', 'service-account.key'] as const
type PartName = (typeof names)[number]

/** True if keys were created in this directory before. */
export function hasPki(dir: string): boolean {
  return existsSync(join(dir, 'pki'))
}

/**
 * Opens the PKI in `DIR/pki`; creates it on first use, all files at once. Key files have mode 0600. Rejects with a
 * plain Error that names the file if a file is missing or a key does not match its certificate.
 */
export async function openPki(dir: string, { clock = systemClock }: { clock?: Clock } = {}): Promise<Pki> {
  const home = join(dir, 'pki')
  if ((await readOptional(join(home, names[0]))) === undefined) await createHome(dir, home, clock)
  const parts = {} as Record<PartName, string>
  for (const name of names) {
    const text = await readOptional(join(home, name))
    if (text === undefined)
      throw new Error(`"${join(home, name)}" is missing: restore it, or remove "${home}" to make new keys`)
    parts[name] = text
  }
  const file = join(home, 'serving.pem')
  return createPki(
    materialOf(parts, (name) => join(home, name)),
    {
      clock,
      store: {
        load: async () => tryKeyPair(await readOptional(file)),
        save: async (_names, pair) => {
          await writeWhole(file, pair.certificate + pair.key)
          return pair
        },
      },
    },
  )
}

/** The `data` of a Secret (type Opaque) with these keys, base64. */
export function pkiToSecret(material: PkiMaterial): Record<string, string> {
  return Object.fromEntries(
    Object.entries(partsOf(material)).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
  )
}

/** The keys in the `data` of a Secret. Throws a plain Error that names the first missing key. */
export function pkiFromSecret(data: Readonly<Record<string, string>>): PkiMaterial {
  const parts = {} as Record<PartName, string>
  for (const name of names) {
    const value = data[name]
    if (value === undefined) throw new Error(`the Secret with our keys has no "${name}"`)
    parts[name] = Buffer.from(value, 'base64').toString()
  }
  return materialOf(parts, (name) => `${name} of the Secret`)
}

function partsOf(material: PkiMaterial): Record<PartName, string> {
  return {
    'client-ca.crt': material.clientCa.certificate,
    'client-ca.key': material.clientCa.key,
    'serving-ca.crt': material.servingCa.certificate,
    'serving-ca.key': material.servingCa.key,
    'service-account.key': material.serviceAccountKey,
  }
}

function materialOf(parts: Record<PartName, string>, location: (name: PartName) => string): PkiMaterial {
  const pair = (certificate: PartName, key: PartName): KeyPair => {
    let fits = false
    let cause: unknown
    try {
      fits = new X509Certificate(parts[certificate]).checkPrivateKey(createPrivateKey(parts[key]))
    } catch (error) {
      cause = error
    }
    if (!fits) throw new Error(`"${location(key)}" is not the key of "${location(certificate)}"`, { cause })
    return { certificate: parts[certificate], key: parts[key] }
  }
  requireKey(parts['service-account.key'], location('service-account.key'))
  return {
    clientCa: pair('client-ca.crt', 'client-ca.key'),
    servingCa: pair('serving-ca.crt', 'serving-ca.key'),
    serviceAccountKey: parts['service-account.key'],
  }
}

function requireKey(text: string, location: string): void {
  try {
    createPrivateKey(text)
  } catch (cause) {
    throw new Error(`"${location}" is no key`, { cause })
  }
}

async function createHome(dir: string, home: string, clock: Clock): Promise<void> {
  const fresh = join(dir, `.pki-${randomBytes(6).toString('hex')}`)
  await mkdir(fresh, { recursive: true, mode: 0o700 })
  try {
    for (const [name, text] of Object.entries(partsOf(await createPkiMaterial({ clock })))) {
      await writeSynced(join(fresh, name), text)
    }
    await rename(fresh, home)
  } catch (error) {
    await rm(fresh, { recursive: true, force: true })
    // Another process has created the directory first, or the directory has other content: the caller reads it and
    // reports a missing file.
    if (!isCode(error, 'ENOTEMPTY') && !isCode(error, 'EEXIST')) throw error
  }
}

async function writeWhole(file: string, text: string): Promise<void> {
  const fresh = `${file}.${randomBytes(6).toString('hex')}`
  await writeSynced(fresh, text)
  await rename(fresh, file)
}

async function writeSynced(file: string, text: string): Promise<void> {
  await using handle = await open(file, 'wx', 0o600)
  await handle.writeFile(text)
  await handle.sync()
  await chmod(file, 0o600)
}

async function readOptional(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined
    throw error
  }
}

/**
 * The certificate and key in one text; undefined if the text is absent or damaged, and a new certificate is then made.
 */
export function tryKeyPair(text: string | undefined): KeyPair | undefined {
  const key = text?.indexOf('-----BEGIN PRIVATE KEY-----') ?? -1
  if (text === undefined || key <= 0) return undefined
  const pair = { certificate: text.slice(0, key), key: text.slice(key) }
  try {
    return new X509Certificate(pair.certificate).checkPrivateKey(createPrivateKey(pair.key)) ? pair : undefined
  } catch {
    return undefined
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === code
}
