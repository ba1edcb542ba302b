// The image of kcp itself, for what runs of it in members.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { cacheDir, repositoryRoot, runCommand, type Cluster } from '#test/support/index.ts'

export const kcpImage = 'kcp.test/kcp:e2e'

const imported = new WeakMap<Cluster, Promise<void>>()

/** Makes the image of the present build available to the pods of the cluster. */
export async function importKcp(cluster: Cluster): Promise<void> {
  const known = imported.get(cluster) ?? importInto(cluster)
  imported.set(cluster, known)
  await known
}

/** `root`: the checkout whose build the image has. */
export async function importInto(
  { node }: Cluster,
  { image = kcpImage, root = repositoryRoot }: { readonly image?: string; readonly root?: string } = {},
): Promise<void> {
  await node?.importImages(await archiveOf(image, root))
}

const archives = new Map<string, Promise<string>>()

/** Writes the archive of an image once in each test process, and removes it when the process ends. */
async function archiveOf(image: string, root: string): Promise<string> {
  const written = archives.get(image) ?? writeArchive(image, root)
  archives.set(image, written)
  return await written
}

async function writeArchive(image: string, root: string): Promise<string> {
  const archive = join(cacheDir(), 'images', `kcp-e2e-${archives.size}-${process.pid}.tar`)
  process.once('exit', () => rmSync(archive, { force: true }))
  const build = ['scripts/image.ts', '--name', image, '--out', archive, '--compression', '0']
  await runCommand(process.execPath, build, { cwd: root })
  return archive
}
