// An image with a shell and the usual file tools of this machine.

import { createHash } from 'node:crypto'
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { cacheDir } from './cache-dir.ts'
import { type Cluster } from './cluster.ts'
import { withFileLock } from './file-lock.ts'
import { writeImageArchive } from './image-archive.ts'
import { programLayer } from './program-layer.ts'
import { systemProgram } from './system-packages.ts'

export const shellImage = 'kcp.test/shell:1'

const tools = [
  ...[
    'cat',
    'chmod',
    'chown',
    'cp',
    'cut',
    'dd',
    'df',
    'du',
    'find',
    'grep',
    'head',
    'id',
    'ln',
    'ls',
    'mkdir',
    'mkfifo',
  ],
  ...[
    'mknod',
    'mv',
    'od',
    'readlink',
    'rm',
    'rmdir',
    'sed',
    'seq',
    'sha256sum',
    'sleep',
    'sort',
    'stat',
    'sync',
    'tail',
  ],
  ...['tar', 'touch', 'tr', 'truncate', 'wc', 'xargs'],
]

/** Makes the image available to the pods of the cluster. */
export async function importShell({ name, node }: Pick<Cluster, 'name' | 'node'>): Promise<void> {
  if (node === undefined) throw new Error(`${name} has no node for images`)
  await node.importImages(await shellArchive())
}

async function shellArchive(): Promise<string> {
  const shell = { path: 'bin/sh', file: realpathSync(systemProgram('sh')), mode: 0o755 }
  const layer = [shell, ...(await programLayer(['sh', ...tools].map(systemProgram)))]
  const version = createHash('sha256')
    .update(layer.map(({ path }) => path).join())
    .digest('hex')
  const file = join(cacheDir(), 'images', `shell-${version.slice(0, 16)}.tar`)
  const make = async (): Promise<void> => {
    if (existsSync(file)) return
    const folders = ['tmp', 'data'].map((path) => ({ path, directory: true as const, mode: 0o1777 }))
    const env = { PATH: '/usr/bin:/bin:/usr/sbin:/sbin' }
    await writeImageArchive(file, [{ tags: [shellImage], layers: [[...folders, ...layer]], entrypoint: ['sh'], env }])
  }
  await withFileLock(`${file}.lock`, make)
  return file
}
