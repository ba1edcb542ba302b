// Flux's kustomize-controller as a process beside a cluster. Its sources get their artifacts from the test.
import { join } from 'node:path'
import { moduleFolders } from '#test/manifests/module-files.ts'
import { ensurePrograms, freePort, startProcess, type ManagedProcess } from '#test/support/index.ts'
import type { Artifact } from './artifact-server.ts'
import { applyAll, installCrds, readyOf, untilObject, type ClusterAccess, type Seen } from './cluster-access.ts'

const sources = 'source.toolkit.fluxcd.io'
export const fluxNamespace = 'flux-system'

/**
 * Installs the CustomResourceDefinitions of Flux's sources and of Kustomization, and the namespace of the controller.
 */
export async function installFlux(cluster: ClusterAccess): Promise<void> {
  const modules = await moduleFolders()
  const folder = (module: string): string => join(modules.get(`github.com/fluxcd/${module}`)!, 'config/crd/bases')
  const kinds = ['gitrepositories', 'ocirepositories', 'buckets', 'externalartifacts']
  await installCrds(cluster, [
    ...kinds.map((kind) => join(folder('source-controller'), `${sources}_${kind}.yaml`)),
    join(folder('kustomize-controller'), 'kustomize.toolkit.fluxcd.io_kustomizations.yaml'),
  ])
  await applyAll(cluster, [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: fluxNamespace } }])
}

/** Starts the controller for all namespaces of the cluster. Its log is JSON. */
export async function startKustomizeController({ name, kubeconfig }: ClusterAccess): Promise<ManagedProcess> {
  const programs = await ensurePrograms(['kustomize-controller'])
  const health = `127.0.0.1:${await freePort()}`
  return startProcess({
    name: `kustomize-controller-${name}`,
    command: programs['kustomize-controller'],
    args: [
      '--watch-all-namespaces',
      '--log-level=info',
      '--log-encoding=json',
      '--metrics-addr=0',
      `--health-addr=${health}`,
      '--requeue-dependency=1s',
      '--min-retry-delay=200ms',
    ],
    env: { KUBECONFIG: kubeconfig, RUNTIME_NAMESPACE: fluxNamespace },
    ready: async (signal) => (await fetch(`http://${health}/readyz`, { signal })).ok,
  })
}

/** Makes this artifact the one of GitRepository `apps`, as source-controller does. */
export async function announce(cluster: ClusterAccess, artifact: Artifact): Promise<void> {
  const object = {
    apiVersion: `${sources}/v1`,
    kind: 'GitRepository',
    metadata: { name: 'apps', namespace: fluxNamespace },
  }
  await applyAll(cluster, [{ ...object, spec: { interval: '1h', url: 'https://git.example.com/apps.git' } }])
  const seen = await untilObject(cluster, ['gitrepositories/apps', fluxNamespace], () => true)
  const { generation } = seen.metadata
  const ready = {
    ...{
      type: 'Ready',
      status: 'True',
      reason: 'Succeeded',
      message: 'stored artifact',
      observedGeneration: generation,
    },
    lastTransitionTime: artifact.lastUpdateTime,
  }
  await cluster.kubectl(
    ['apply', '--server-side', '--subresource=status', '--field-manager=source-controller', '-f', '-'],
    { input: { ...object, status: { artifact, observedGeneration: generation, conditions: [ready] } } },
  )
}

export interface KustomizationSpec {
  readonly path: string
  readonly wait?: boolean
  readonly serviceAccountName?: string
  readonly targetNamespace?: string
  readonly dependsOn?: readonly { readonly name: string }[]
  readonly healthChecks?: readonly object[]
  readonly kubeConfig?: { readonly secretRef: { readonly name: string } }
}

/** Applies a Kustomization of GitRepository `apps`, which prunes. `namespace` is the controller's by default. */
export async function applyKustomization(
  cluster: ClusterAccess,
  name: string,
  spec: KustomizationSpec,
  namespace = fluxNamespace,
): Promise<void> {
  const sourceRef = { kind: 'GitRepository', name: 'apps', namespace: fluxNamespace }
  const common = { interval: '1h', retryInterval: '1s', timeout: '5m', prune: true, sourceRef }
  const metadata = { name, namespace }
  const kind = { apiVersion: 'kustomize.toolkit.fluxcd.io/v1', kind: 'Kustomization' }
  await applyAll(cluster, [{ ...kind, metadata, spec: { ...common, ...spec } }])
}

let requests = 0

/** Reconciles now, as `flux reconcile` does, and resolves once that attempt has ended. */
export async function reconcileNow(cluster: ClusterAccess, name: string): Promise<Seen> {
  const requestedAt = `request-${requests++}`
  const annotation = `reconcile.fluxcd.io/requestedAt=${requestedAt}`
  await cluster.kubectl(['-n', fluxNamespace, 'annotate', '--overwrite', `kustomization/${name}`, annotation])
  return untilObject(
    cluster,
    [`kustomizations/${name}`, fluxNamespace],
    (seen) => seen.status?.['lastHandledReconcileAt'] === requestedAt && readyOf(seen)?.status !== 'Unknown',
  )
}

/** Resolves once the Kustomization applied this revision and everything it waits for is ready. */
export function untilApplied(
  cluster: ClusterAccess,
  name: string,
  { revision }: Artifact,
  { namespace = fluxNamespace } = {},
): Promise<Seen> {
  return untilObject(
    cluster,
    [`kustomizations/${name}`, namespace],
    (seen) => readyOf(seen)?.status === 'True' && seen.status?.['lastAppliedRevision'] === revision,
  )
}
