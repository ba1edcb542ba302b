// A team's work with Flux in one cluster: install, upgrade, correct drift, deploy as somebody, delete.
import { expect } from 'chai'
import { stringify } from 'yaml'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { waitFor } from '#test/support/index.ts'
import type { Artifact, ArtifactServer } from './artifact-server.ts'
import {
  applyAll,
  read,
  readyOf,
  tryRead,
  untilGone,
  untilObject,
  type ClusterAccess,
  type Seen,
} from './cluster-access.ts'
import { announce, applyKustomization, fluxNamespace, reconcileNow, untilApplied } from './flux.ts'
import type { Explained } from './logged-errors.ts'
import { nextShopFiles, rolledOut, shopFiles, shopKinds } from './shop-manifests.ts'

/** Errors that the controller logs because the story provokes them. */
export const explainedByStory: Explained = [
  [/system:serviceaccount:team:deployer\\" cannot/, 'the service account has no rights yet'],
  [/size is above the limit/, 'a rule of the CustomResourceDefinition refuses the object'],
]

/** An object as the application left it: without times, uids and revisions, which differ between clusters. */
export type LeftObject = Readonly<Record<string, unknown>>

export interface KustomizeStory {
  readonly title: string
  readonly run: (cluster: ClusterAccess, artifacts: ArtifactServer) => Promise<void>
}

/** The chapters in order; each needs those before it. */
export const kustomizeStory: readonly KustomizeStory[] = [
  { title: 'installs an application of many kinds and waits until it is ready', run: install },
  { title: 'changes nothing when it reconciles the same revision again', run: repeat },
  { title: 'upgrades, removes dropped fields and prunes dropped objects', run: upgrade },
  { title: 'corrects drift and keeps what others added', run: correct },
  { title: 'reports an object that a rule of its definition refuses', run: refuse },
  { title: 'applies as the service account of a tenant, within its rights', run: impersonate },
]

async function install(cluster: ClusterAccess, artifacts: ArtifactServer): Promise<void> {
  const artifact = await artifacts.publish('one', shopFiles)
  await announce(cluster, artifact)
  await applyKustomization(cluster, 'shop', { path: './shop', wait: true })
  await untilRolledOut(cluster, artifact)
  const seen = await read(cluster, ['kustomizations/shop', fluxNamespace])
  expect((seen.status?.['inventory'] as { entries: unknown[] }).entries).to.have.length(14)
  const web = await read(cluster, ['deployments/web', 'shop'])
  const managers = web.metadata.managedFields?.map(({ manager, operation }) => `${manager} ${operation}`)
  expect(managers).to.include('kustomize-controller Apply')
  expect(web.metadata.labels).to.deep.equal({
    'kustomize.toolkit.fluxcd.io/name': 'shop',
    'kustomize.toolkit.fluxcd.io/namespace': fluxNamespace,
  })
}

async function repeat(cluster: ClusterAccess): Promise<void> {
  const versions = async (): Promise<string[]> =>
    (await shopObjects(cluster)).map(({ kind, metadata }) => `${kind}/${metadata.name} ${metadata.resourceVersion}`)
  const before = await versions()
  const seen = await reconcileNow(cluster, 'shop')
  expect(readyOf(seen)?.status, readyOf(seen)?.message).to.equal('True')
  expect(await versions()).to.deep.equal(before)
}

async function upgrade(cluster: ClusterAccess, artifacts: ArtifactServer): Promise<void> {
  const artifact = await artifacts.publish('two', nextShopFiles)
  await announce(cluster, artifact)
  await untilRolledOut(cluster, artifact)
  expect((await tryRead(cluster, ['ingresses/web', 'shop'])) === undefined, 'pruned').to.equal(true)
  const { data } = (await read(cluster, ['configmaps/settings', 'shop'])) as Seen & { data: unknown }
  expect(data).to.deep.equal({ colour: 'green' })
  const { spec: widget } = (await read(cluster, ['widgets/first', 'shop'])) as Seen & { spec: unknown }
  expect(widget).to.deep.equal({
    size: 2,
    limit: 10,
    tags: ['a', 'b'],
    parts: [
      { name: 'right', weight: 2 },
      { name: 'top', weight: 1 },
    ],
  })
  const { spec } = (await read(cluster, ['services/web', 'shop'])) as Seen & { spec: { ports: { name: string }[] } }
  expect(spec.ports.map(({ name }) => name)).to.deep.equal(['web', 'metrics'])
}

async function correct(cluster: ClusterAccess): Promise<void> {
  const { kubectl } = cluster
  await kubectl(['-n', 'shop', 'patch', 'cm/settings', '--type=merge', '-p', '{"data":{"colour":"red","mine":"1"}}'])
  await kubectl(['-n', 'shop', 'scale', 'deploy/web', '--replicas=5'])
  // What the managers of kubectl wrote is drift to Flux; what others added is not.
  await kubectl(['-n', 'shop', 'label', 'svc/web', 'somebody=was-here', '--field-manager=somebody'])
  await kubectl(['-n', 'shop', 'delete', 'secret/web', 'role/web'])
  // The Deployment has a new generation, whose status somebody has to report.
  const seen = await withRollOuts(cluster, reconcileNow(cluster, 'shop'))
  expect(readyOf(seen)?.status, readyOf(seen)?.message).to.equal('True')
  const { data } = (await read(cluster, ['configmaps/settings', 'shop'])) as Seen & { data: { colour: string } }
  expect(data.colour).to.equal('green')
  const { spec } = (await read(cluster, ['deployments/web', 'shop'])) as Seen & { spec: { replicas: number } }
  expect(spec.replicas).to.equal(2)
  const { metadata } = await read(cluster, ['services/web', 'shop'])
  expect(metadata.labels?.['somebody']).to.equal('was-here')
  await read(cluster, ['secrets/web', 'shop'])
  await read(cluster, ['roles/web', 'shop'])
}

async function refuse(cluster: ClusterAccess, artifacts: ArtifactServer): Promise<void> {
  const widget = {
    apiVersion: 'shop.example.com/v1',
    kind: 'Widget',
    metadata: { name: 'huge', namespace: 'shop' },
    spec: { size: 11 },
  }
  await announce(cluster, await artifacts.publish('three', { ...nextShopFiles, 'bad/widget.yaml': stringify(widget) }))
  await applyKustomization(cluster, 'bad', { path: './bad' })
  const { message } = readyOf(await untilFailed(cluster, 'bad'))!
  expect(message).to.equal(
    'Widget/shop/huge dry-run failed (Invalid): Widget.shop.example.com "huge" is invalid: spec: Invalid value: ' +
      '"object": size is above the limit\n',
  )
  await cluster.kubectl(['-n', fluxNamespace, 'delete', 'kustomization/bad', '--timeout=60s'])
}

async function impersonate(cluster: ClusterAccess, artifacts: ArtifactServer): Promise<void> {
  const map = (name: string, namespace?: string): string =>
    stringify({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
      data: { a: 'b' },
    })
  const files = { ...nextShopFiles, 'team/own.yaml': map('own', 'team') }
  const metadata = { name: 'deployer', namespace: 'team' }
  await applyAll(cluster, [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
  ])
  await announce(cluster, await artifacts.publish('four', files))
  await applyKustomization(cluster, 'team', { path: './team', serviceAccountName: 'deployer' }, 'team')
  const { message } = readyOf(await untilFailed(cluster, 'team', 'team'))!
  expect(message).to.include(
    'configmaps "own" is forbidden: User "system:serviceaccount:team:deployer" cannot patch resource "configmaps" in API ' +
      'group "" in the namespace "team"',
  )
  await applyAll(cluster, [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' },
      subjects: [{ kind: 'ServiceAccount', ...metadata }],
    },
  ])
  const granted = await artifacts.publish('five', { ...files, 'other/file.yaml': '' })
  await announce(cluster, granted)
  await untilApplied(cluster, 'team', granted, { namespace: 'team' })
  await announce(cluster, await artifacts.publish('six', { ...files, 'team/foreign.yaml': map('foreign', 'shop') }))
  const failed = readyOf(await untilFailed(cluster, 'team', 'team'))!
  expect(failed.message).to.include('cannot patch resource "configmaps" in API group "" in the namespace "shop"')
  expect(await tryRead(cluster, ['configmaps/foreign', 'shop'])).to.equal(undefined)
}

/** Deletes the Kustomizations; everything that they applied goes with them. */
export async function uninstall(cluster: ClusterAccess): Promise<void> {
  await cluster.kubectl(['delete', '-A', 'kustomizations', '--all', '--timeout=60s'])
  await untilGone(cluster, ['namespaces/shop'])
  await untilGone(cluster, ['customresourcedefinitions/widgets.shop.example.com'])
  await untilGone(cluster, ['configmaps/own', 'team'])
}

/** All objects of the application, without what differs from cluster to cluster, sorted. */
export async function leftObjects(cluster: ClusterAccess): Promise<readonly LeftObject[]> {
  const objects = await shopObjects(cluster)
  const bare = objects.map(({ metadata, ...rest }) => {
    const { uid: _uid, resourceVersion: _version, creationTimestamp: _time, managedFields = [], ...kept } = metadata
    const owned = managedFields.map(({ time: _at, ...entry }) => entry)
    return { ...withoutAddresses(rest), metadata: { ...kept, managedFields: owned } }
  })
  const nameOf = (one: LeftObject): string => `${String(one['kind'])} ${(one['metadata'] as { name: string }).name}`
  return bare.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
}

function withoutAddresses(object: Record<string, unknown>): Record<string, unknown> {
  const { spec } = object as { spec?: Record<string, unknown> }
  if (object['kind'] !== 'Service' || spec === undefined) return object
  const { clusterIP: _ip, clusterIPs: _ips, ...rest } = spec
  return { ...object, spec: rest }
}

async function shopObjects({ kubectl }: ClusterAccess): Promise<readonly KubeObject[]> {
  const args = ['-n', 'shop', 'get', shopKinds, '-o', 'json', '--show-managed-fields']
  const { items } = JSON.parse((await kubectl([...args, '-l', 'kustomize.toolkit.fluxcd.io/name'])).stdout) as {
    items: KubeObject[]
  }
  return items
}

const untilFailed = (cluster: ClusterAccess, name: string, namespace = fluxNamespace): Promise<Seen> =>
  untilObject(cluster, [`kustomizations/${name}`, namespace], (seen) => readyOf(seen)?.status === 'False')

/** Waits for the revision, and reports meanwhile that the pods of the Deployment run. */
const untilRolledOut = (cluster: ClusterAccess, artifact: Artifact): Promise<Seen> =>
  withRollOuts(cluster, untilApplied(cluster, 'shop', artifact))

/** Writes the status that Deployment `web` has once its pods run, for each of its generations until `work` ends. */
async function withRollOuts<T>(cluster: ClusterAccess, work: Promise<T>): Promise<T> {
  let isDone = false
  let reported = -1
  const ended = work.finally(() => (isDone = true))
  const step = async (): Promise<boolean> => {
    const generation = (await tryRead(cluster, ['deployments/web', 'shop']))?.metadata.generation ?? -1
    if (generation > reported) {
      const patch = JSON.stringify({ status: rolledOut(generation) })
      await cluster.kubectl(['-n', 'shop', 'patch', 'deploy/web', '--subresource=status', '--type=merge', '-p', patch])
      reported = generation
    }
    return isDone
  }
  await Promise.all([ended, waitFor(step, { what: 'the work to end', deadlineMs: 300_000, intervalMs: 250 })])
  return await ended
}
