// Which classes a logical cluster shows, and what is left to do for that. Pure.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { canonicalJson } from '#apimachinery/json/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  classKinds,
  classObject,
  projectedAnnotation,
  type ClassKind,
  type MemberClass,
  type MemberCluster,
} from '#crds/index.ts'

type Members = readonly DeepReadonly<MemberCluster>[]

export type Step =
  | { readonly do: 'apply'; readonly kind: ClassKind; readonly object: KubeObject }
  /** With the uid it was seen with. A class whose fixed fields have changed is created again by the next visit. */
  | { readonly do: 'delete'; readonly kind: ClassKind; readonly name: string; readonly uid: string }

/**
 * The classes of these members as objects of a logical cluster. Where two members have a class of the same name, the first
 * member by name gives its fields. A default is shown if all members agree on it, because a claim keeps the class it is given.
 */
export function projectedClasses(kind: ClassKind, members: Members): KubeObject[] {
  const found = new Map<string, { shown: DeepReadonly<MemberClass>; in: string[] }>()
  const defaults: (string | undefined)[] = []
  for (const { metadata, status } of members.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))) {
    const items = status?.classes?.find((one) => one.kind === kind.kind)?.items
    if (items === undefined) continue
    defaults.push(items.find(({ isDefault }) => isDefault)?.name)
    for (const shown of items) {
      const known = found.get(shown.name)
      if (known === undefined) found.set(shown.name, { shown, in: [metadata.name] })
      else known.in.push(metadata.name)
    }
  }
  const [common] = defaults
  return [...found.values()].map(({ shown, in: names }) => {
    const isDefault = shown.name === common && defaults.every((name) => name === common)
    const object = classObject(kind, { ...shown, isDefault })
    const annotations = { ...object.metadata.annotations, [projectedAnnotation]: names.join(',') }
    return { ...object, metadata: { ...object.metadata, annotations } }
  })
}

/** The steps for one logical cluster. A class that its tenant made is left alone, and wins over one of that name in members. */
export function planClasses(
  members: Members,
  existing: (kind: ClassKind) => Iterable<DeepReadonly<KubeObject>>,
): Step[] {
  return classKinds.flatMap((kind): Step[] => {
    const wanted = new Map(projectedClasses(kind, members).map((object) => [object.metadata.name ?? '', object]))
    const steps: Step[] = []
    for (const object of existing(kind)) {
      const { name = '', uid = '', annotations, deletionTimestamp } = object.metadata
      const isTenants = annotations?.[projectedAnnotation] === undefined
      const should = wanted.get(name)
      if (isTenants || deletionTimestamp !== undefined || (should !== undefined && isAsWanted(object, should)))
        wanted.delete(name)
      else if (should === undefined || !haveSameFixedFields(object, should)) {
        steps.push({ do: 'delete', kind, name, uid })
        wanted.delete(name)
      }
    }
    return [...steps, ...[...wanted.values()].map((object): Step => ({ do: 'apply', kind, object }))]
  })
}

/** Fields that the API server does not let anybody change. */
const fixed = ['provisioner', 'reclaimPolicy', 'volumeBindingMode', 'handler', 'value', 'preemptionPolicy', 'spec']

function haveSameFixedFields(object: DeepReadonly<KubeObject>, should: KubeObject): boolean {
  return fixed.every((field) => should[field] === undefined || isSame(object[field], should[field]))
}

function isAsWanted({ metadata, ...object }: DeepReadonly<KubeObject>, should: KubeObject): boolean {
  const { metadata: wanted, ...content } = should
  const { annotations = {} } = wanted
  return (
    Object.entries(content).every(([field, value]) => isSame(object[field], value)) &&
    Object.entries(annotations).every(([name, value]) => metadata.annotations?.[name] === value) &&
    classKinds.every(
      ({ defaultAnnotation = '' }) => metadata.annotations?.[defaultAnnotation] === annotations[defaultAnnotation],
    )
  )
}

function isSame(one: unknown, other: unknown): boolean {
  return canonicalJson(one ?? null) === canonicalJson(other ?? null)
}
