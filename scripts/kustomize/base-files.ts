// The files of the kustomize base, made of what the chart renders with its default values.
import type { KubeObject } from '#apimachinery/meta/index.ts'

/** A folder of the base: its objects by file, and the other folders that belong to it. */
export interface BaseFolder {
  readonly resources: readonly string[]
  readonly files: Readonly<Record<string, readonly KubeObject[]>>
}

/** Files of config/crd and config/rbac that belong to the base; scripts/manifests.ts writes the others. */
export const baseFiles: readonly string[] = ['kustomization.yaml', 'bindings.yaml']

/** What only Helm reads. */
const helmLabels = ['helm.sh/chart', 'app.kubernetes.io/managed-by']
const bindingKinds = ['ServiceAccount', 'ClusterRoleBinding', 'RoleBinding']
const generatedKinds = ['CustomResourceDefinition', 'ClusterRole', 'Role']

/** Tells objects of one base apart: group, kind, namespace and name. */
export function keyOf({ apiVersion, kind, metadata }: KubeObject): string {
  return [apiVersion, kind, metadata.namespace ?? '', metadata.name].join(' ')
}

/**
 * The objects of a chart that has no Helm: without hooks, which Helm alone runs, and without labels and annotations
 * that name it. Does not change what it is given.
 */
export function withoutHelm(rendered: readonly KubeObject[]): KubeObject[] {
  return rendered.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] === undefined).map(withoutHelmIn)
}

/**
 * The folders of config/ by name, for the objects of `withoutHelm`. `present` names the generated files of config/crd
 * and config/rbac, whose objects are there already; the check of the whole output finds what differs.
 */
export function baseFolders(
  objects: readonly KubeObject[],
  present: Readonly<Record<'crd' | 'rbac', readonly string[]>>,
): Readonly<Record<string, BaseFolder>> {
  const inRbac = (object: KubeObject): boolean =>
    bindingKinds.includes(object.kind) && object.metadata.name !== 'kcp-apiserver-authentication-reader'
  const isGenerated = ({ kind, metadata }: KubeObject): boolean =>
    generatedKinds.includes(kind) || metadata.name === 'kcp-apiserver-authentication-reader'
  const isNamespace = ({ kind }: KubeObject): boolean => kind === 'Namespace'
  const rest = objects.filter((object) => !inRbac(object) && !isGenerated(object) && !isNamespace(object))
  return {
    crd: { resources: present.crd, files: {} },
    rbac: { resources: present.rbac, files: { 'bindings.yaml': objects.filter(inRbac) } },
    manager: { resources: [], files: { 'manager.yaml': rest } },
    default: {
      resources: ['../crd', '../rbac', '../manager'],
      files: { 'namespace.yaml': objects.filter(isNamespace) },
    },
  }
}

/** What differs between two sets of objects, a line each, sorted; empty if nothing does. */
export function differences(
  { name: leftName, objects: left }: { name: string; objects: readonly KubeObject[] },
  { name: rightName, objects: right }: { name: string; objects: readonly KubeObject[] },
): string[] {
  const texts = (objects: readonly KubeObject[]): Map<string, string> =>
    new Map(objects.map((object) => [keyOf(object), JSON.stringify(sorted(object))]))
  const [lefts, rights] = [texts(left), texts(right)]
  const keys = [...new Set([...lefts.keys(), ...rights.keys()])].sort()
  return keys.flatMap((key) => {
    const [a, b] = [lefts.get(key), rights.get(key)]
    if (a === b) return []
    if (a === undefined) return [`${key}: only in ${rightName}`]
    if (b === undefined) return [`${key}: only in ${leftName}`]
    return [`${key}: ${leftName} has ${a}, ${rightName} has ${b}`]
  })
}

function withoutHelmIn(object: KubeObject): KubeObject {
  return without(object) as KubeObject
}

/** At every depth: labels of pod templates name the chart too. */
function without(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(without)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).flatMap(([name, child]): [string, unknown][] => {
    if (helmLabels.includes(name) || name === 'helm.sh/resource-policy') return []
    const next = without(child)
    return name === 'annotations' && Object.keys(next as object).length === 0 ? [] : [[name, next]]
  })
  return Object.fromEntries(entries)
}

/** With the keys of all objects in order, so that equal ones have the same JSON. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, child]) => [name, sorted(child)]))
}
