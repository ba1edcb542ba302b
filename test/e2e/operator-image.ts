// The image of an operator of others, built from its Go module: Flux's kustomize-controller.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { cacheDir, ensurePrograms, writeImageArchive, type Cluster } from '#test/support/index.ts'

export const kustomizeControllerImage = 'kcp.test/kustomize-controller:1'

/** Makes the image available to the pods of this cluster. */
export async function importKustomizeController({ node }: Cluster): Promise<void> {
  const program = (await ensurePrograms(['kustomize-controller']))['kustomize-controller']
  const version = createHash('sha256').update(program).digest('hex').slice(0, 16)
  const file = join(cacheDir(), 'images', `kustomize-controller-${version}.tar`)
  if (!existsSync(file)) {
    const layer = [
      { path: 'tmp', directory: true as const, mode: 0o1777 },
      { path: 'kustomize-controller', file: program, mode: 0o755 },
    ]
    const image = { tags: [kustomizeControllerImage], layers: [layer], entrypoint: ['/kustomize-controller'] }
    await writeImageArchive(file, [image])
  }
  await node?.importImages(file)
}
