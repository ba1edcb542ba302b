// A cluster as other people's programs see it: a logical cluster, a host or a real kube-apiserver.
import { readFileSync } from 'node:fs'
import { parseAllDocuments } from 'yaml'
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { createClient, httpTransport, loadKubeconfig } from '#client/index.ts'
import { isLongRun, waitFor, type CommandResult } from '#test/support/index.ts'

export interface ClusterAccess {
  readonly name: string
  /** Path of the admin's kubeconfig. */
  readonly kubeconfig: string
  readonly kubectl: (
    args: readonly string[],
    options?: { input?: string | object; expectCode?: number | 'any'; timeoutMs?: number },
  ) => Promise<CommandResult>
}

/** Milliseconds; longer where many clusters share the machine. */
const defaultDeadlineMs = isLongRun ? 300_000 : 60_000

export interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
  readonly observedGeneration?: number
}

export type Seen = KubeObject & { status?: Record<string, unknown> & { conditions?: readonly Condition[] } }

const admission = { group: 'admissionregistration.k8s.io', version: 'v1' }
const kcp = { group: 'kcp.dev', version: 'v1alpha1' }
/** The resources that stories ask for. */
const resources: Readonly<Record<string, GroupVersionResource>> = {
  clusterpolicies: { group: 'kyverno.io', version: 'v1', resource: 'clusterpolicies' },
  configmaps: { group: '', version: 'v1', resource: 'configmaps' },
  constrainttemplates: { group: 'templates.gatekeeper.sh', version: 'v1', resource: 'constrainttemplates' },
  cronjobs: { group: 'batch', version: 'v1', resource: 'cronjobs' },
  customresourcedefinitions: { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' },
  deployments: { group: 'apps', version: 'v1', resource: 'deployments' },
  gitrepositories: { group: 'source.toolkit.fluxcd.io', version: 'v1', resource: 'gitrepositories' },
  ingresses: { group: 'networking.k8s.io', version: 'v1', resource: 'ingresses' },
  kustomizations: { group: 'kustomize.toolkit.fluxcd.io', version: 'v1', resource: 'kustomizations' },
  logicalclusters: { ...kcp, resource: 'logicalclusters' },
  memberclusters: { ...kcp, resource: 'memberclusters' },
  namespaces: { group: '', version: 'v1', resource: 'namespaces' },
  networkpolicies: { group: 'networking.k8s.io', version: 'v1', resource: 'networkpolicies' },
  placements: { ...kcp, resource: 'placements' },
  poddisruptionbudgets: { group: 'policy', version: 'v1', resource: 'poddisruptionbudgets' },
  prometheuses: { group: 'monitoring.coreos.com', version: 'v1', resource: 'prometheuses' },
  requiredlabels: { group: 'constraints.gatekeeper.sh', version: 'v1beta1', resource: 'requiredlabels' },
  rolebindings: { group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'rolebindings' },
  roles: { group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'roles' },
  secrets: { group: '', version: 'v1', resource: 'secrets' },
  services: { group: '', version: 'v1', resource: 'services' },
  statefulsets: { group: 'apps', version: 'v1', resource: 'statefulsets' },
  validatingadmissionpolicies: { ...admission, resource: 'validatingadmissionpolicies' },
  validatingadmissionpolicybindings: { ...admission, resource: 'validatingadmissionpolicybindings' },
  widgets: { group: 'shop.example.com', version: 'v1', resource: 'widgets' },
}

/** One object: `RESOURCE/NAME`, with its namespace where it has one. */
export type Reference = readonly [what: string, namespace?: string]

/** The object, or undefined if there is none. */
export async function tryRead(cluster: ClusterAccess, reference: Reference): Promise<Seen | undefined> {
  await using reader = await openReader(cluster)
  return await reader.tryGet(reference)
}

/** The object. Rejects if there is none. */
export async function read(cluster: ClusterAccess, reference: Reference): Promise<Seen> {
  const seen = await tryRead(cluster, reference)
  if (seen === undefined) throw new Error(`${reference.join(' in ')} is not in ${cluster.name}`)
  return seen
}

/** Reads without kubectl, whose start costs too much where many clusters are polled. */
async function openReader({ kubeconfig }: ClusterAccess) {
  const transport = httpTransport(await loadKubeconfig({ file: kubeconfig }, { trusted: true }))
  const client = createClient(transport)
  return {
    tryGet: ([what, namespace]: Reference, signal = never): Promise<Seen | undefined> => {
      const [resource = '', name = ''] = what.split('/')
      const key = namespace === undefined ? { name } : { namespace, name }
      return client.tryGet<Seen>(resources[resource]!, key, { signal })
    },
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  }
}

const never = new AbortController().signal

/** Applies objects with kubectl's server-side apply. */
export async function applyAll(cluster: ClusterAccess, objects: readonly object[]): Promise<void> {
  const input = { apiVersion: 'v1', kind: 'List', items: objects }
  await cluster.kubectl(['apply', '--server-side', '-f', '-'], { input })
}

/** Applies CustomResourceDefinitions from files and waits until they are served. */
export async function installCrds(cluster: ClusterAccess, files: readonly string[]): Promise<void> {
  const named = files.flatMap((file) => ['-f', file])
  await cluster.kubectl(['apply', '--server-side', ...named])
  await cluster.kubectl(['wait', '--for=condition=Established', '--timeout=60s', ...named])
}

/** The objects of a manifest in YAML. */
export function readManifest(file: string): Seen[] {
  const objects = parseAllDocuments(readFileSync(file, 'utf8')).map((one) => one.toJS() as Seen | null)
  return objects.filter((one) => one !== null)
}

/** Applies the objects of a release: first its CustomResourceDefinitions, until they are served, then the others. */
export async function installManifest(cluster: ClusterAccess, objects: readonly Seen[]): Promise<void> {
  const crds = objects.filter(({ kind }) => kind === 'CustomResourceDefinition')
  await applyAll(cluster, crds)
  const names = crds.map(({ metadata }) => `crd/${metadata.name}`)
  await cluster.kubectl(['wait', '--for=condition=Established', '--timeout=60s', ...names])
  await applyAll(
    cluster,
    objects.filter((one) => !crds.includes(one)),
  )
}

/** Resolves with the object once `isDone` holds; the error at the deadline shows its status. */
export async function untilObject(
  cluster: ClusterAccess,
  reference: Reference,
  isDone: (seen: Seen) => boolean,
  { deadlineMs = defaultDeadlineMs } = {},
): Promise<Seen> {
  await using reader = await openReader(cluster)
  return await waitFor(
    async (signal) => {
      const seen = await reader.tryGet(reference, signal)
      if (seen !== undefined && isDone(seen)) return seen
      throw new Error(JSON.stringify(seen?.status ?? seen))
    },
    { what: `${reference.join(' in ')} in ${cluster.name}`, deadlineMs, intervalMs: 200 },
  )
}

/** Resolves once the object is gone. */
export async function untilGone(cluster: ClusterAccess, reference: Reference): Promise<void> {
  await using reader = await openReader(cluster)
  await waitFor(async (signal) => (await reader.tryGet(reference, signal)) === undefined, {
    what: `${reference.join(' in ')} to be gone from ${cluster.name}`,
    deadlineMs: defaultDeadlineMs,
    intervalMs: 200,
  })
}

/** The condition `Ready`, unless it is about an older generation. */
export function readyOf({ metadata, status }: Seen): Condition | undefined {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  const { observedGeneration } = ready ?? {}
  return observedGeneration === undefined || observedGeneration === metadata.generation ? ready : undefined
}
