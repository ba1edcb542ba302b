// The Helm chart on a real host with a real node, with the image that `make image` builds.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import {
  cacheDir,
  ensurePrograms,
  kubectl,
  repositoryRoot,
  runCommand,
  startCluster,
  type Cluster,
  type CommandResult,
} from '#test/support/index.ts'

export const chartImage = { repository: 'kcp.test/kcp', tag: 'e2e' }

export interface ChartInstallation extends AsyncDisposable {
  readonly host: Cluster
  helm(args: readonly string[]): Promise<CommandResult>
  /** Installs or upgrades the chart with these values, and waits until it is ready. */
  install(verb: 'install' | 'upgrade', ...settings: readonly string[]): Promise<CommandResult>
  /** Resolves when it is Ready. */
  createLogicalCluster(name: string, owner: string): Promise<void>
  /** A kubeconfig through the host's own endpoint, made of the URL in the status. */
  tenant(name: string, user: string, options?: { readonly admitted?: boolean }): Promise<string>
}

/** Starts a host that has the image; nothing is installed yet. */
export async function startChartHost(): Promise<ChartInstallation> {
  if (!existsSync(join(repositoryRoot, 'dist/src/cli/main.js'))) throw new Error("the image needs 'make build'")
  await using stack = new AsyncDisposableStack()
  const { helm } = await ensurePrograms(['helm'])
  const archive = join(cacheDir(), 'images', `kcp-${process.pid}.tar`)
  stack.defer(() => void runCommand('rm', ['-f', archive]))
  const image = `${chartImage.repository}:${chartImage.tag}`
  const build = ['scripts/image.ts', '--name', image, '--out', archive, '--compression', '0']
  const [host] = await Promise.all([
    startCluster({ name: 'charted', nodes: 1 }),
    runCommand(process.execPath, build, { cwd: repositoryRoot }),
  ])
  stack.use(host)
  await host.node?.importImages(archive)
  const helmRun = (args: readonly string[]): Promise<CommandResult> =>
    runCommand(helm, [...args], { env: { KUBECONFIG: host.kubeconfig } })
  const rest = stack.move()
  return {
    host,
    helm: helmRun,
    install: (verb, ...settings) =>
      helmRun([
        ...[verb, 'kcp', join(repositoryRoot, 'charts/kcp'), '--wait', '--timeout', '120s'],
        ...[
          `image.repository=${chartImage.repository}`,
          `image.tag=${chartImage.tag}`,
          `hostURL=${host.server}`,
          ...settings,
        ].flatMap((setting) => ['--set', setting]),
      ]),
    async createLogicalCluster(name, owner) {
      const spec = { owners: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: owner }] }
      const input = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name }, spec }
      await host.kubectl(['create', '-f', '-'], { input })
      await host.kubectl(['wait', '--for=condition=Ready', `lc/${name}`, '--timeout=60s'])
    },
    async tenant(name, user, { admitted = true } = {}) {
      if (admitted) await admit(host, name, user)
      const { stdout: url } = await host.kubectl(['get', 'lc', name, '-o', 'jsonpath={.status.url}'])
      const file = await host.kubeconfigFor({ commonName: user, organizations: [`tenants-${name}`] })
      await kubectl(file, ['config', 'set-cluster', 'charted', '--server', url])
      return file
    },
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  }
}

async function admit(host: Cluster, name: string, user: string): Promise<void> {
  const role = `tenant-${name}`
  const resource = 'logicalclusters.virtual.kcp.dev/proxy'
  const create = ['create', 'clusterrole', role, '--verb=*', `--resource=${resource}`, `--resource-name=${name}`]
  await host.kubectl(create, { expectCode: 'any' })
  await host.kubectl(['create', 'clusterrolebinding', role, `--clusterrole=${role}`, `--user=${user}`], {
    expectCode: 'any',
  })
}
