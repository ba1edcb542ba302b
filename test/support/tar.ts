// Writes tar archives, with only the features that container images need.

import { createReadStream, statSync } from 'node:fs'
import { type Writable } from 'node:stream'

export type TarEntry = {
  /** Without a leading slash. */
  path: string
  /** 0o755 for folders, the file's own mode for files, else 0o644. */
  mode?: number
  uid?: number
  gid?: number
} & ({ file: string } | { content: string | Buffer } | { directory: true } | { link: string })

const block = 512

/**
 * Writes `entries` and the end mark to `out`, and leaves it open. The same input gives the same bytes, because no dates
 * are written.
 */
export async function writeTar(entries: readonly TarEntry[], out: Writable): Promise<void> {
  for (const entry of entries) {
    const size = sizeOf(entry)
    await write(out, header(entry, size))
    if ('file' in entry) for await (const chunk of createReadStream(entry.file)) await write(out, chunk as Buffer)
    else if ('content' in entry) await write(out, Buffer.from(entry.content))
    if (size % block !== 0) await write(out, Buffer.alloc(block - (size % block)))
  }
  await write(out, Buffer.alloc(2 * block))
}

async function write(out: Writable, bytes: Buffer): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    out.write(bytes, (error) => (error === undefined || error === null ? resolve() : reject(error)))
  })
}

function sizeOf(entry: TarEntry): number {
  if ('file' in entry) return statSync(entry.file).size
  return 'content' in entry ? Buffer.byteLength(entry.content) : 0
}

function header(entry: TarEntry, size: number): Buffer {
  const link = 'link' in entry ? entry.link : ''
  const path = 'directory' in entry && !entry.path.endsWith('/') ? `${entry.path}/` : entry.path
  const mode = entry.mode ?? defaultMode(entry)
  const type = 'directory' in entry ? '5' : link !== '' ? '2' : '0'
  const ids = { uid: entry.uid ?? 0, gid: entry.gid ?? 0 }
  const plain = { path, link, mode, size, type, ...ids }
  const long: [string, string][] = []
  if (Buffer.byteLength(path) > 100) long.push(['path', path])
  if (Buffer.byteLength(link) > 100) long.push(['linkpath', link])
  if (long.length === 0) return ustar(plain)
  // A pax header before the entry holds values that do not fit the fixed fields.
  const records = Buffer.concat(long.map(([key, value]) => paxRecord(key, value)))
  const padding = Buffer.alloc((block - (records.length % block)) % block)
  const pax = ustar({ path: 'pax', link: '', mode: 0o644, size: records.length, type: 'x', ...ids })
  return Buffer.concat([pax, records, padding, ustar({ ...plain, path: path.slice(-90), link: link.slice(0, 90) })])
}

function defaultMode(entry: TarEntry): number {
  if ('file' in entry) return statSync(entry.file).mode & 0o777
  return 'directory' in entry ? 0o755 : 'link' in entry ? 0o777 : 0o644
}

/** `LENGTH key=value\n`, where LENGTH counts itself. */
function paxRecord(key: string, value: string): Buffer {
  const rest = Buffer.from(` ${key}=${value}\n`)
  let length = rest.length
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length
  return Buffer.concat([Buffer.from(String(length)), rest])
}

interface Fields {
  path: string
  link: string
  mode: number
  size: number
  type: string
  uid: number
  gid: number
}

function ustar({ path, link, mode, size, type, uid, gid }: Fields): Buffer {
  const bytes = Buffer.alloc(block)
  const octal = (value: number, at: number, width: number): void => {
    bytes.write(`${value.toString(8).padStart(width - 1, '0')}\0`, at, 'latin1')
  }
  bytes.write(path, 0, 100)
  octal(mode, 100, 8)
  octal(uid, 108, 8)
  octal(gid, 116, 8)
  octal(size, 124, 12)
  octal(0, 136, 12)
  bytes.write(' '.repeat(8), 148) // the checksum counts its own field as blanks
  bytes.write(type, 156)
  bytes.write(link, 157, 100)
  bytes.write('ustar\x0000', 257, 'latin1')
  const sum = bytes.reduce((total, byte) => total + byte, 0)
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return bytes
}
