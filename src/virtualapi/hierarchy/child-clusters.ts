// Children of a logical cluster as its own API shows them: LogicalClusters under the names that the tenant gives. The
// LogicalCluster in the host has a longer name, made of that name and the parent's uid, so that names of different
// tenants neither collide nor reveal one another.
import { clusterIdOf, rootClusterName, type ClusterName, type KubeObject } from '#apimachinery/meta/index.ts'
import { fieldForbidden, fieldInvalid } from '#apimachinery/field/index.ts'
import { podSecurityLevels, type PodSecurityLevel } from '#apimachinery/pod-security/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import {
  childNameLabel,
  defaultPodSecurity,
  logicalClusterCrd,
  type LogicalCluster as Stored,
  type Subject,
} from '#crds/index.ts'
import { compileCrd, defaultCrd, type CustomResourceDefinition } from '#virtualapi/catalog/apiextensions/index.ts'
import type { DefinitionSource, SharedDefinition } from '#virtualapi/catalog/sharing/definition-source.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import { ancestorName, isAncestorName } from '#virtualapi/auth/authn/ancestor-names.ts'
import { ancestryOf } from '#virtualapi/request/hierarchy.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'

/** The most characters of a child's name: the name in the host has eleven more, and at most 63. */
export const maxChildName = 50

const resource = 'logicalclusters.kcp.dev'

/**
 * True if tenants may create logical clusters below this one: limits.children of it or of its nearest ancestor with
 * such a limit says how many.
 */
export function mayHaveChildren(cluster: LogicalCluster, directory: Pick<ClusterDirectory, 'byName'>): boolean {
  const limits = [cluster, ...ancestryOf(cluster, directory).ancestors].map((one) => one.limits?.children)
  return (limits.find((limit) => limit !== undefined) ?? 0) > 0
}

/** Serves `logicalclusters` in the logical clusters that may have children. A tenant's own definition comes first. */
export function childDefinitions(directory: Pick<ClusterDirectory, 'byName' | 'byId'>): DefinitionSource {
  const isServed = (id: LogicalCluster['id']): boolean => {
    const cluster = directory.byId(id)
    return cluster !== undefined && cluster.name !== rootClusterName && mayHaveChildren(cluster, directory)
  }
  return {
    find: ({ cluster }, name) => (name === resource && isServed(cluster) ? definition() : undefined),
    all: ({ cluster }) => (isServed(cluster) ? [definition()] : []),
    load: () => undefined,
  }
}

let compiled: SharedDefinition | undefined

function definition(): SharedDefinition {
  if (compiled !== undefined) return compiled
  const crd = logicalClusterCrd() as unknown as CustomResourceDefinition
  defaultCrd(crd)
  compiled = { compiled: compileCrd(crd), read: () => crd, isTerminating: false }
  return compiled
}

/**
 * True if `logicalclusters` in this logical cluster are its children. A tenant may have a definition of that name, even
 * an equal one: its objects are ordinary objects.
 */
export function showsChildren(
  cluster: LogicalCluster,
  objects: ClusterObjects,
  directory: Pick<ClusterDirectory, 'byName'>,
): boolean {
  if (cluster.name === rootClusterName || !mayHaveChildren(cluster, directory)) return false
  return objects.get('customresourcedefinitions.apiextensions.k8s.io', '', resource) === undefined
}

/** The name of a child in its parent. */
export function childNameOf({ name, labels }: Pick<LogicalCluster, 'name' | 'labels'>): string {
  return labels?.[childNameLabel] ?? name
}

/** The name in the host of a child that a tenant creates. */
export function hostNameOf(child: string, { uid }: Pick<LogicalCluster, 'uid'>): ClusterName {
  return `${child}-${clusterIdOf(`${uid}/${child}`)}` as ClusterName
}

/** The child as its parent's API shows it. */
export function shownChild({ metadata, spec = {}, status }: Stored, parent: ClusterName): KubeObject {
  const { uid, creationTimestamp, deletionTimestamp, generation, annotations, labels } = metadata
  const { owners, podSecurity, limits, inherit } = spec
  return {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'LogicalCluster',
    metadata: {
      name: labels?.[childNameLabel] ?? metadata.name,
      ...(uid !== undefined && { uid }),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
      ...(generation !== undefined && { generation }),
      ...(annotations !== undefined && { annotations }),
    },
    spec: {
      ...(owners !== undefined && { owners: owners.filter(isOfTree).map((owner) => shownOwner(owner, parent)) }),
      ...(podSecurity !== undefined && { podSecurity }),
      ...(limits !== undefined && { limits }),
      ...(inherit !== undefined && { inherit }),
      parentRef: { name: parent },
    },
    ...(status !== undefined && { status: withoutSecrets(status) }),
  }
}

function withoutSecrets({ kubeconfigs: _, ...status }: NonNullable<Stored['status']>): Stored['status'] {
  return status
}

/** Why a tenant may not write this child; empty if they may. */
export function childCauses({ metadata, spec = {} }: Stored, parent: LogicalCluster, old?: Stored): StatusCause[] {
  const causes: StatusCause[] = []
  const { name, labels = {} } = metadata
  if (old === undefined && (!/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name) || name.length > maxChildName))
    causes.push(
      fieldInvalid('metadata.name', name, `must be an RFC 1123 label of at most ${String(maxChildName)} characters`),
    )
  // Rules of admins select logical clusters by their labels.
  if (Object.keys(labels).length > 0)
    causes.push(fieldForbidden('metadata.labels', 'labels of a logical cluster are for the admins of the installation'))
  if (spec.parentRef !== undefined && spec.parentRef.name !== parent.name)
    causes.push(
      fieldForbidden('spec.parentRef.name', `a logical cluster that is created here is below "${parent.name}"`),
    )
  if (spec.kubeconfigs !== undefined && spec.kubeconfigs.length > 0)
    causes.push(fieldForbidden('spec.kubeconfigs', 'Secrets of the installation are for its admins'))
  if (spec.access !== undefined)
    causes.push(fieldForbidden('spec.access', 'the inventory of the installation is for its admins'))
  if (spec.sleep !== undefined)
    causes.push(fieldForbidden('spec.sleep', 'the sleep of logical clusters is for the admins of the installation'))
  if (spec.audit !== undefined)
    causes.push(fieldForbidden('spec.audit', 'audit logs of logical clusters are for the admins of the installation'))
  if (spec.source !== undefined && old === undefined)
    causes.push(fieldForbidden('spec.source', 'copies of logical clusters are made by the admins of the installation'))
  const [wanted, least] = [spec.podSecurity?.enforce, parent.podSecurity ?? defaultPodSecurity]
  const isChanged = wanted !== old?.spec?.podSecurity?.enforce
  if (wanted !== undefined && isChanged && rankOf(wanted) < rankOf(least))
    causes.push(fieldForbidden('spec.podSecurity.enforce', `the parent has level "${least}", and a child is not wider`))
  return causes
}

const rankOf = (level: PodSecurityLevel): number => podSecurityLevels.indexOf(level)

/** The LogicalCluster to write for a valid child. `old`: the present one, for an update. */
export function storedChild(
  child: Stored,
  parent: LogicalCluster,
  { user, old }: { user: UserInfo; old?: Stored },
): Stored {
  const { metadata, spec = {} } = child
  const { owners = [], podSecurity, limits, inherit } = spec
  const creator = old === undefined && owners.length === 0 ? creatorOf(user, parent) : undefined
  // Owners of the host and Secrets of the installation are for its admins: tenants neither see nor change them.
  const ofHost = (old?.spec?.owners ?? []).filter((owner) => !isOfTree(owner))
  const stored = [
    ...ofHost,
    ...(creator === undefined ? owners.map((owner) => storedOwner(owner, parent.name)) : [creator]),
  ]
  const { annotations } = metadata
  const isOurs = (key: string): boolean => /^([^/]*[.])?kcp[.](dev|io)[/]/.test(key)
  const kept = [
    ...Object.entries(annotations ?? {}).filter(([key]) => !isOurs(key)),
    ...Object.entries(old?.metadata.annotations ?? {}).filter(([key]) => isOurs(key)),
  ]
  const present = old?.metadata ?? {
    name: hostNameOf(metadata.name, parent),
    labels: { [childNameLabel]: metadata.name },
  }
  const { annotations: _annotations, managedFields: _managedFields, ...rest } = present
  const [parentLevel = defaultPodSecurity, level = defaultPodSecurity] = [parent.podSecurity, podSecurity?.enforce]
  const enforce = podSecurity === undefined && rankOf(parentLevel) > rankOf(level) ? parentLevel : level
  return {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'LogicalCluster',
    metadata: { ...rest, ...(kept.length > 0 && { annotations: Object.fromEntries(kept) }) },
    spec: {
      parentRef: { name: parent.name },
      ...(stored.length > 0 && { owners: stored }),
      podSecurity: { enforce },
      ...(limits !== undefined && { limits }),
      ...(inherit !== undefined && { inherit }),
      ...(old?.spec?.kubeconfigs !== undefined && { kubeconfigs: old.spec.kubeconfigs }),
      ...(old?.spec?.access !== undefined && { access: old.spec.access }),
      ...(old?.spec?.authentication !== undefined && { authentication: old.spec.authentication }),
      ...(old?.spec?.audit !== undefined && { audit: old.spec.audit }),
      ...(old?.spec?.source !== undefined && { source: old.spec.source }),
      ...(old?.spec?.sleep !== undefined && { sleep: old.spec.sleep }),
    },
  }
}

/** True for a user or group of an ancestor; false for those of the host. */
function isOfTree({ kind, name }: Subject): boolean {
  return kind !== 'ServiceAccount' && isAncestorName(name)
}

/** An owner in a child: a user of the parent, under the name that the child knows. */
function storedOwner({ kind, name, namespace = '' }: Subject, parent: ClusterName): Subject {
  const own = kind === 'ServiceAccount' ? `system:serviceaccount:${namespace}:${name}` : name
  // system:authenticated is the only name that users of the parent and of the child share.
  const known = isAncestorName(own) ? own : `${ancestorName(parent, '')}${own}`
  return { kind: kind === 'Group' ? 'Group' : 'User', name: known, apiGroup: 'rbac.authorization.k8s.io' }
}

function shownOwner(owner: Subject, parent: ClusterName): Subject {
  const start = ancestorName(parent, '')
  return owner.name.startsWith(start) ? { ...owner, name: owner.name.slice(start.length) } : owner
}

/** The user who creates a child without owners; undefined for the installation itself. */
function creatorOf({ realm, name }: UserInfo, parent: LogicalCluster): Subject | undefined {
  const apiGroup = 'rbac.authorization.k8s.io'
  switch (realm.kind) {
    case 'installation':
      return undefined
    case 'host':
      return { kind: 'User', name: name.startsWith('host:') ? name.slice('host:'.length) : name, apiGroup }
    case 'cluster':
      return { kind: 'User', name: realm.id === parent.id ? `${ancestorName(parent.name, '')}${name}` : name, apiGroup }
  }
}
