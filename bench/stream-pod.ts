// A pod on a real node of a member, and the two ways to it: through a logical cluster of `kcp start`, and at the
// member's own kube-apiserver.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { httpTransport, loadKubeconfig, type Transport } from '#client/index.ts'
import { createLogicalCluster, idOf, installWithoutHost } from '#test/e2e/installation.ts'
import {
  cacheDir,
  ensurePrograms,
  kubectl,
  programLayer,
  startCluster,
  waitFor,
  writeImageArchive,
} from '#test/support/index.ts'
import { withChildren } from './process-usage.ts'

export interface Way {
  readonly name: 'kcp' | 'direct'
  readonly kubeconfig: string
  readonly namespace: string
  readonly pod: string
  /** HTTP/1.1, with connections of its own. */
  readonly transport: Transport
}

export interface StreamPod extends AsyncDisposable {
  readonly ways: readonly [Way, Way]
  /** The processes of kcp. */
  readonly pids: readonly number[]
}

const image = 'kcp.test/streams:1'
const label = { app: 'streams' }
/** The file that container `files` serves on port 80, as an HTTP path. */
export const servedPath = '/data/file'

/**
 * Starts all of it. Container `log` has written `logBytes` of log, `tools` has a shell and the usual programs, `files`
 * serves a file of `fileBytes`.
 */
export async function startStreamPod(
  { logBytes, fileBytes }: { readonly logBytes: number; readonly fileBytes: number },
  signal: AbortSignal,
): Promise<StreamPod> {
  await using stack = new AsyncDisposableStack()
  // A log as large as this is rotated long before, at 10 MiB.
  const flags = { kubelet: ['--container-log-max-size=4Gi'] }
  const [member, archive] = await Promise.all([
    startCluster({ name: 'streams', nodes: 1, flags, signal }).then((cluster) => stack.use(cluster)),
    imageArchive(),
  ])
  await member.node?.importImages(archive)
  const installation = stack.use(await installWithoutHost({ east: member }))
  await installation.join(member)
  await createLogicalCluster(installation, 'acme', 'alice')
  const tenant = await installation.tenant('acme', 'alice')
  await kubectl(tenant, ['apply', '-f', '-'], { input: deployment(logBytes, fileBytes) })
  await kubectl(tenant, ['rollout', 'status', 'deployment/streams', '--timeout=120s'])
  const nameIn = async (kubeconfig: string, namespace: string): Promise<string> => {
    const args = ['get', 'pods', '-n', namespace, '-l', 'app=streams', '-o', 'jsonpath={.items[0].metadata.name}']
    return (await kubectl(kubeconfig, args)).stdout
  }
  const way = async (name: Way['name'], kubeconfig: string, namespace: string): Promise<Way> => ({
    ...{ name, kubeconfig, namespace },
    pod: await nameIn(kubeconfig, namespace),
    transport: stack.use(httpTransport(await loadKubeconfig({ file: kubeconfig }, { trusted: true }))),
  })
  const below = `${await idOf(installation, 'acme')}-default`
  const ways = [await way('kcp', tenant, 'default'), await way('direct', member.kubeconfig, below)] as const
  await waitFor(
    async () => {
      const args = ['logs', '-n', below, ways[1].pod, '-c', 'log', '--tail=1']
      return (await kubectl(member.kubeconfig, args)).stdout.includes('the end')
    },
    { what: 'the log to be written', deadlineMs: 120_000 },
  )
  const pids = installation.processes.flatMap(({ pid }) => withChildren(pid))
  const owned = stack.move()
  return { ways, pids, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

const tools = ['cat', 'head', 'wc', 'yes', 'true', 'sleep'].map((name) => `/usr/bin/${name}`)

async function imageArchive(): Promise<string> {
  const { agnhost } = await ensurePrograms(['agnhost'])
  const layer = [
    { path: 'tmp', directory: true as const, mode: 0o1777 },
    { path: 'agnhost', file: agnhost, mode: 0o755 },
    ...(await programLayer(['/bin/sh', ...tools])),
  ]
  const version = createHash('sha256').update([agnhost, JSON.stringify(layer)].join())
  const file = join(cacheDir(), 'images', `streams-${version.digest('hex').slice(0, 16)}.tar`)
  if (existsSync(file)) return file
  const env = { PATH: '/usr/bin:/bin' }
  await writeImageArchive(file, [{ tags: [image], layers: [layer], entrypoint: ['/bin/sh', '-c'], env }])
  return file
}

function deployment(logBytes: number, fileBytes: number): object {
  const line = 'x'.repeat(199)
  const data = { name: 'data', mountPath: '/data' }
  const container = (name: string, command: string, mounts: readonly object[] = []): object => ({
    ...{ name, image, args: [command], volumeMounts: mounts },
  })
  const containers = [
    container('log', `yes ${line} | head -c ${logBytes}; echo the end; exec sleep infinity`),
    container('tools', 'exec sleep infinity'),
    container('files', `head -c ${fileBytes} /dev/zero > ${servedPath}; exec /agnhost test-webserver`, [data]),
  ]
  const spec = { terminationGracePeriodSeconds: 0, containers, volumes: [{ name: 'data', emptyDir: {} }] }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'streams' },
    spec: { selector: { matchLabels: label }, template: { metadata: { labels: label }, spec } },
  }
}
