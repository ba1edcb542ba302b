// The image of kcp itself, for what runs of it in members.
import { join } from 'node:path'
import { cacheDir, repositoryRoot, runCommand, type Cluster } from '#test/support/index.ts'

export const kcpImage = 'kcp.test/kcp:e2e'

const imported = new WeakMap<Cluster, Promise<void>>()

/** Builds the image from the present build, and makes it available to the pods of the cluster. */
export async function importKcp(cluster: Cluster): Promise<void> {
  const known = imported.get(cluster) ?? importInto(cluster)
  imported.set(cluster, known)
  await known
}

/** `root`: the checkout whose build the image has. */
export async function importInto(
  { name, node }: Cluster,
  { image = kcpImage, root = repositoryRoot }: { readonly image?: string; readonly root?: string } = {},
): Promise<void> {
  const archive = join(cacheDir(), 'images', `kcp-e2e-${name}-${process.pid}.tar`)
  try {
    const build = ['scripts/image.ts', '--name', image, '--out', archive, '--compression', '0']
    await runCommand(process.execPath, build, { cwd: root })
    await node?.importImages(archive)
  } finally {
    await runCommand('rm', ['-f', archive])
  }
}
