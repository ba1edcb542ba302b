// The real clusters that all e2e suites share: a host and two members with nodes and pods. Booted once, ended after the
// last test.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { after } from 'mocha'
import {
  cacheDir,
  ensurePrograms,
  importShell,
  programLayer,
  sharedBackend,
  startCluster,
  startStorage,
  writeImageArchive,
  type Cluster,
} from '#test/support/index.ts'

export interface Lab {
  readonly host: Cluster
  readonly east: Cluster
  readonly west: Cluster
}

/** An image with kubectl: an unmodified client with in-cluster configuration. And with tar, which `kubectl cp` runs. */
export const kubectlImage = 'kcp.test/kubectl:1'

let booting: Promise<Lab> | undefined

/** The lab, booted on first use. */
export function lab(): Promise<Lab> {
  booting ??= boot()
  return booting
}

let storing: Promise<void> | undefined

/** Storage in both members, which share its backend, and an image with a shell; started on first use. */
export function storageOfLab(): Promise<void> {
  storing ??= (async () => {
    const { east, west } = await lab()
    const backend = sharedBackend(east.run)
    await Promise.all([east, west].flatMap((member) => [startStorage(member, { backend }), importShell(member)]))
  })()
  return storing
}

async function boot(): Promise<Lab> {
  // An autoscaler looks every 15 s by default.
  const flags = { 'kube-controller-manager': ['--horizontal-pod-autoscaler-sync-period=2s'] }
  const [host, east, west, image] = await Promise.all([
    startCluster({ name: 'host', nodes: 0 }),
    startCluster({ name: 'east', nodes: 1, flags }),
    startCluster({ name: 'west', nodes: 1, flags }),
    kubectlArchive(),
  ])
  for (const { node } of [east, west]) await node?.importImages(image)
  return { host, east, west }
}

async function kubectlArchive(): Promise<string> {
  const { kubectl } = await ensurePrograms(['kubectl'])
  const tar = await programLayer(['/usr/bin/tar'])
  const version = createHash('sha256')
    .update([kubectl, ...tar.map(({ path }) => path)].join())
    .digest('hex')
    .slice(0, 16)
  const file = join(cacheDir(), 'images', `kubectl-${version}.tar`)
  if (existsSync(file)) return file
  const layer = [
    { path: 'tmp', directory: true as const, mode: 0o1777 },
    { path: 'kubectl', file: kubectl, mode: 0o755 },
    ...tar,
  ]
  await writeImageArchive(file, [
    { tags: [kubectlImage], layers: [layer], entrypoint: ['/kubectl'], env: { HOME: '/tmp', PATH: '/usr/bin' } },
  ])
  return file
}

/** Ends the lab after all suites; called once, from the file that mocha loads first. */
export function endLabAfterAll(): void {
  after(async function () {
    this.timeout(180_000)
    const running = await booting?.catch(() => undefined)
    booting = undefined
    storing = undefined
    await Promise.all([running?.east.stop(), running?.west.stop(), running?.host.stop()])
  })
}
