// The images that every node starts with: pause, agnhost (the tests' workload) and CoreDNS.

import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { cacheDir } from './cache-dir.ts'
import { withFileLock } from './file-lock.ts'
import { writeImageArchive } from './image-archive.ts'
import { ensurePrograms } from './programs.ts'
import { type TarEntry } from './tar.ts'

export const pauseImage = 'registry.k8s.io/pause:3.10.1'
export const agnhostImage = 'registry.k8s.io/e2e-test-images/agnhost:2.56'
export const corednsImage = 'registry.k8s.io/coredns/coredns:v1.12.4'

/** An archive with all of them, built once per version of the programs. */
export async function nodeImages({ signal }: { signal?: AbortSignal | undefined } = {}): Promise<string> {
  const { agnhost, coredns } = await ensurePrograms(['agnhost', 'coredns'], { signal })
  const version = createHash('sha256')
  version.update([agnhostImage, pauseImage, corednsImage, agnhost, coredns].join())
  const file = join(cacheDir(), 'images', `node-${version.digest('hex').slice(0, 16)}.tar`)
  if (existsSync(file)) return file
  const folders: TarEntry[] = [
    { path: 'tmp', directory: true, mode: 0o1777 },
    { path: 'etc', directory: true },
  ]
  const agnhostLayer: TarEntry[] = [...folders, { path: 'agnhost', file: agnhost, mode: 0o755 }]
  const make = async (): Promise<void> => {
    if (existsSync(file)) return
    await writeImageArchive(file, [
      { tags: [agnhostImage], layers: [agnhostLayer], entrypoint: ['/agnhost'], cmd: ['pause'] },
      { tags: [pauseImage], layers: [agnhostLayer], entrypoint: ['/agnhost', 'pause'] },
      {
        tags: [corednsImage],
        layers: [[...folders, { path: 'coredns', file: coredns, mode: 0o755 }]],
        entrypoint: ['/coredns'],
      },
    ])
  }
  await withFileLock(join(cacheDir(), 'images', '.lock'), make, { signal })
  return file
}
