// The controller that shows the classes of members in the logical clusters that may use these members.
import { canonicalJson } from '#apimachinery/json/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { clusterInKey, type DeepReadonly, ObjectIndex } from '#client/index.ts'
import {
  type ClassKind,
  classKinds,
  classObject,
  isConditionTrue,
  labelsInTree,
  type LogicalCluster,
  logicalClusters,
  matches,
  type MemberClass,
  type MemberCluster,
  projectedAnnotation,
} from '#crds/index.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'
import { loopWithMembers } from '#operator/framework/loop.ts'

/** Shows the classes of members as objects of logical clusters. */
export function classesController(): OperatorController {
  return loopWithMembers('classes', ({ context, members, stack }) => {
    const { informers, tenantInformers } = context
    const clusters = informers.of<LogicalCluster>(logicalClusters)
    const classes = classKinds.map((kind) => ({ kind, informer: tenantInformers.of<KubeObject>(kind.gvr) }))
    const byCluster = new Map<ClassKind, ObjectIndex>(
      classes.map(({ kind, informer }) => [kind, stack.use(new ObjectIndex(informer, (key) => [clusterInKey(key)]))]),
    )
    return {
      workers: 4,
      fairnessKey: (key) => key,
      informers: [members, clusters, ...classes.map(({ informer }) => informer)],
      follow: (add) => [
        members.onChange(({ before, after }) => {
          if (factsOf(before) === factsOf(after)) return
          for (const { metadata } of clusters.store.list()) add(metadata.name)
        }),
        clusters.onChange(({ key, before, after }) => {
          if (factsOfCluster(before) === factsOfCluster(after)) return
          add(key)
          // Labels hold for the logical clusters below, too.
          if (before !== undefined)
            for (const { metadata, spec } of clusters.store.list())
              if (spec?.parentRef !== undefined) add(metadata.name)
        }),
        ...classes.map(({ informer }) => informer.onChange(({ key }) => add(clusterInKey(key)))),
      ],
      reconcile: async (name, signal) => {
        const cluster = clusters.store.get(name)
        if (cluster === undefined || cluster.metadata.deletionTimestamp !== undefined) return
        if (!isConditionTrue(cluster, 'Ready')) return
        const labelsOf = ({ metadata, spec }: DeepReadonly<LogicalCluster>) =>
          labelsInTree({ labels: metadata.labels, parent: spec?.parentRef?.name }, (above) => {
            const found = clusters.store.get(above)
            return found && { labels: found.metadata.labels, parent: found.spec?.parentRef?.name }
          })
        const admitting = members.store
          .list()
          .filter(({ spec }) => matches(spec?.logicalClusterSelector, labelsOf(cluster)))
        const steps = planClasses(admitting, (kind) => byCluster.get(kind)?.of(name) ?? [])
        for (const step of steps) await apply(step, name, context, signal)
      },
    }
  })
}

async function apply(step: Step, cluster: string, { virtual }: OperatorContext, signal: AbortSignal): Promise<void> {
  const client = virtual(`/clusters/${cluster}`)
  const { gvr } = step.kind
  if (step.do === 'delete') {
    await client.delete(gvr, { name: step.name }, { uid: step.uid, signal }).catch(tolerate('NotFound', 'Conflict'))
    return
  }
  const name = step.object.metadata.name ?? ''
  try {
    await client.patch(gvr, { name }, 'apply', step.object, { fieldManager: 'kcp-classes', force: true, signal })
  } catch (error) {
    // A class that the server refuses in logical clusters is not shown; the others are.
    if (!isStatusError(error, 'Invalid')) throw error
  }
}

/** The facts of a member that decide which classes are shown, as text. */
function factsOf(
  member: { readonly spec?: unknown; readonly status?: { readonly classes?: unknown } } | undefined,
): string {
  const { logicalClusterSelector } = (member?.spec ?? {}) as { logicalClusterSelector?: unknown }
  return JSON.stringify([logicalClusterSelector, member?.status?.classes])
}

function factsOfCluster(
  cluster: (Parameters<typeof isConditionTrue>[0] & { readonly metadata: { readonly labels?: unknown } }) | undefined,
): string {
  return JSON.stringify([cluster?.metadata.labels, cluster !== undefined && isConditionTrue(cluster, 'Ready')])
}

type Members = readonly DeepReadonly<MemberCluster>[]

type Step =
  | { readonly do: 'apply'; readonly kind: ClassKind; readonly object: KubeObject }
  /** `uid`: of the class that was read. If its fixed fields have changed, the next reconcile creates it again. */
  | { readonly do: 'delete'; readonly kind: ClassKind; readonly name: string; readonly uid: string }

/**
 * The classes of these members as objects of a logical cluster. Where two members have a class of the same name, the
 * first member by name gives its fields. A default is shown if all members agree on it, because a claim keeps the class
 * it is given.
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

/**
 * The steps for one logical cluster. A class that its tenant made is left alone, and wins over one of that name in
 * members.
 */
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
