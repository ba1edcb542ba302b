// Runs `kcp start` as a user does, for the length of a suite: its directory, clients and logical clusters.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openInstallation } from '#cli/commands/installation.ts'
import { issueKubeconfig, nameOfLogicalCluster } from '#cli/index.ts'
import { isConditionTrue, type LogicalCluster } from '#crds/index.ts'
import { freePort, kubectl, startKcp, waitFor, type CommandResult, type ManagedProcess } from '#test/support/index.ts'
import { openRawClient, type RawClient } from './raw-client.ts'

const logicalClusters = '/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters'

type Kubectl = (
  args: readonly string[],
  options?: { input?: string | object; expectCode?: number | 'any'; timeoutMs?: number },
) => Promise<CommandResult>

/** A logical cluster and its admin. */
export interface Tenant {
  readonly name: string
  /** Path of its kubeconfig. */
  readonly kubeconfig: string
  readonly kubectl: Kubectl
  /** Authenticated as its admin; paths are complete: `/clusters/NAME/api/v1/...`. */
  readonly http: RawClient
  /** `/clusters/NAME`. */
  readonly base: string
}

export interface KcpInstance extends AsyncDisposable {
  readonly rootDir: string
  readonly port: number
  readonly process: ManagedProcess
  /** The installation's admin, in logical cluster `root`. */
  readonly admin: Tenant
  /** Creates a logical cluster and a kubeconfig for it. `podSecurity` is spec.podSecurity.enforce. */
  tenant(name: string, options?: { readonly podSecurity?: 'privileged' | 'baseline' | 'restricted' }): Promise<Tenant>
}

/** Starts kcp on an empty directory and resolves when it is ready. Everything is removed when it is disposed of. */
export async function startInstance(
  args: readonly string[] = [],
  { env = {} }: { env?: Readonly<Record<string, string>> } = {},
): Promise<KcpInstance> {
  await using stack = new AsyncDisposableStack()
  const dir = mkdtempSync(join(tmpdir(), 'kcp-integration-'))
  stack.defer(() => rmSync(dir, { recursive: true, force: true }))
  const rootDir = join(dir, 'root')
  const port = await freePort()
  const adminFile = join(rootDir, 'admin.kubeconfig')
  const process = stack.use(
    await startKcp(['start', '--root-dir', rootDir, '--port', String(port), ...args], {
      name: `kcp-${port}`,
      env,
      ready: async (signal) => existsSync(adminFile) && (await isReady(port, signal)),
    }),
  )
  const tenantOf = (name: string, kubeconfig: string): Tenant => ({
    name,
    kubeconfig,
    base: `/clusters/${name}`,
    kubectl: (kubectlArgs, options) => kubectl(kubeconfig, kubectlArgs, options),
    http: stack.use(openRawClient({ kubeconfig })),
  })
  const admin = tenantOf('root', adminFile)
  const owned = stack.move()
  return {
    rootDir,
    port,
    process,
    admin,
    async tenant(name, { podSecurity } = {}) {
      const spec = podSecurity === undefined ? {} : { podSecurity: { enforce: podSecurity } }
      const object = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name }, spec }
      // Not by kubectl: hundreds of its processes would take a minute of a core.
      const created = await admin.http.request('POST', logicalClusters, { body: object })
      if (created.status !== 201) throw new Error(`LogicalCluster "${name}" was not created: ${created.text}`)
      const ready = async (signal: AbortSignal): Promise<boolean> =>
        isReadyObject((await admin.http.request('GET', `${logicalClusters}/${name}`, { signal })).json())
      await waitFor(ready, { what: `LogicalCluster "${name}" to be Ready`, deadlineMs: 20_000, intervalMs: 50 })
      // As `kcp kubeconfig` does, in this process for the same reason.
      const { signal } = new AbortController()
      await using installation = await openInstallation({ rootDir }, signal)
      const text = await issueKubeconfig(installation, nameOfLogicalCluster(name), 365, signal)
      const file = join(dir, `${name}.kubeconfig`)
      writeFileSync(file, text, { mode: 0o600 })
      const http = openRawClient({ kubeconfig: file })
      owned.use(http)
      return {
        name,
        kubeconfig: file,
        base: `/clusters/${name}`,
        kubectl: (kubectlArgs, options) => kubectl(file, kubectlArgs, options),
        http,
      }
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** Whether an object as read has the condition Ready. */
function isReadyObject(object: unknown): boolean {
  return isConditionTrue(object as LogicalCluster, 'Ready')
}

/** Whether the server on this port reports ready. */
async function isReady(port: number, signal: AbortSignal): Promise<boolean> {
  await using client = openRawClient({ port })
  return (await client.request('GET', '/readyz', { signal })).status === 200
}
