// The fields of pods, ServiceAccounts and Ingresses that name other objects, as tables. Objects that these fields name
// are copied too.
import type { JsonValue } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import type { PodSpec } from '#syncer/transform/pod-types.ts'
import type { CachedObject } from './resources.ts'

export type ReferencedResource = 'configmaps' | 'secrets' | 'serviceaccounts' | 'persistentvolumeclaims'

export interface Reference {
  readonly resource: ReferencedResource
  readonly name: string
}

/** Paths below a pod's spec to the name of an object; `*` stands for every element of a list. */
export const podReferences: readonly { readonly resource: ReferencedResource; readonly path: string }[] = [
  { resource: 'serviceaccounts', path: 'serviceAccountName' },
  { resource: 'secrets', path: 'imagePullSecrets.*.name' },
  ...['containers', 'initContainers'].flatMap((containers) => [
    { resource: 'configmaps' as const, path: `${containers}.*.env.*.valueFrom.configMapKeyRef.name` },
    { resource: 'secrets' as const, path: `${containers}.*.env.*.valueFrom.secretKeyRef.name` },
    { resource: 'configmaps' as const, path: `${containers}.*.envFrom.*.configMapRef.name` },
    { resource: 'secrets' as const, path: `${containers}.*.envFrom.*.secretRef.name` },
  ]),
  { resource: 'persistentvolumeclaims', path: 'volumes.*.persistentVolumeClaim.claimName' },
  { resource: 'configmaps', path: 'volumes.*.configMap.name' },
  { resource: 'secrets', path: 'volumes.*.secret.secretName' },
  { resource: 'configmaps', path: 'volumes.*.projected.sources.*.configMap.name' },
  { resource: 'secrets', path: 'volumes.*.projected.sources.*.secret.name' },
  { resource: 'secrets', path: 'volumes.*.csi.nodePublishSecretRef.name' },
  { resource: 'secrets', path: 'volumes.*.azureFile.secretName' },
  ...['cephfs', 'cinder', 'flexVolume', 'iscsi', 'rbd', 'scaleIO', 'storageos'].map((driver) => ({
    resource: 'secrets' as const,
    path: `volumes.*.${driver}.secretRef.name`,
  })),
]

/**
 * All objects that a pod with this spec refers to, without duplicates. Without a ServiceAccount a pod uses `default`.
 */
export function referencesOf(spec: DeepReadonly<PodSpec>): Reference[] {
  const found = new Map<string, Reference>([
    ['serviceaccounts/default', { resource: 'serviceaccounts', name: 'default' }],
  ])
  if (spec.serviceAccountName) found.clear()
  for (const { resource, path } of podReferences) {
    for (const name of valuesAt(spec as unknown as JsonValue, path.split('.')))
      found.set(`${resource}/${name}`, { resource, name })
  }
  return [...found.values()]
}

/** The claims of a StatefulSet, one reference for each template: `*` stands for the ordinal of a pod. */
export function claimReferences(workload: CachedObject): Reference[] {
  if (workload.kind !== 'StatefulSet') return []
  const templates = valuesAt(workload['spec'] as JsonValue | undefined, [
    'volumeClaimTemplates',
    '*',
    'metadata',
    'name',
  ])
  const set = workload.metadata.name ?? ''
  return templates.map((template) => ({ resource: 'persistentvolumeclaims', name: `${template}-${set}-*` }))
}

/**
 * The reference (see claimReferences) by which a StatefulSet would refer to a claim of this name, and the ordinal in
 * the name; undefined: the name does not end with an ordinal.
 */
export function asOrdinalClaim(claim: string): { readonly reference: string; readonly ordinal: number } | undefined {
  const [, prefix, ordinal] = /^(.+-)(0|[1-9]\d*)$/.exec(claim) ?? []
  if (prefix === undefined) return undefined
  return { reference: `persistentvolumeclaims/${prefix}*`, ordinal: Number(ordinal) }
}

/** The Secrets by which pods of a ServiceAccount pull their images: the member adds them to each pod that it makes. */
export function accountReferences(account: CachedObject): Reference[] {
  const names = valuesAt(account['imagePullSecrets'] as JsonValue | undefined, ['*', 'name'])
  return names.map((name) => ({ resource: 'secrets', name }))
}

/** The Secrets with the certificates of an Ingress. */
export function ingressReferences(ingress: CachedObject): Reference[] {
  const names = valuesAt(ingress['spec'] as JsonValue | undefined, ['tls', '*', 'secretName'])
  return names.map((name) => ({ resource: 'secrets', name }))
}

/** Names of the Services that an Ingress leads to. */
export function ingressBackends(ingress: CachedObject): string[] {
  const spec = ingress['spec'] as JsonValue | undefined
  return [
    ...valuesAt(spec, ['defaultBackend', 'service', 'name']),
    ...valuesAt(spec, ['rules', '*', 'http', 'paths', '*', 'backend', 'service', 'name']),
  ]
}

/** `KIND/NAME` of what a HorizontalPodAutoscaler scales. */
export function scaleTargetOf(autoscaler: CachedObject): string {
  const { scaleTargetRef } = (autoscaler['spec'] ?? {}) as { scaleTargetRef?: { kind?: string; name?: string } }
  return `${scaleTargetRef?.kind ?? ''}/${scaleTargetRef?.name ?? ''}`
}

function valuesAt(value: JsonValue | undefined, path: readonly string[]): string[] {
  const [head, ...rest] = path
  if (head === undefined) return typeof value === 'string' && value !== '' ? [value] : []
  if (head === '*') return Array.isArray(value) ? value.flatMap((element) => valuesAt(element, rest)) : []
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  return valuesAt(value[head], rest)
}
