// The controller that shows the classes of members in the logical clusters that may use these members.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { clusterInKey, ObjectIndex } from '#client/index.ts'
import {
  classKinds,
  isConditionTrue,
  logicalClusters,
  matches,
  memberClusters,
  type ClassKind,
  type LogicalCluster,
  type MemberCluster,
} from '#crds/index.ts'
import { createKeyQueue, runController } from '#reconcile/index.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'
import { untilOne } from '#operator/framework/until-one.ts'
import { planClasses, type Step } from './plan-classes.ts'

/** Shows the classes of members as objects of logical clusters. */
export function classesController(): OperatorController {
  return { name: 'classes', run }
}

async function run(
  context: OperatorContext,
  { signal, started }: Parameters<OperatorController['run']>[1],
): Promise<void> {
  const { informers, tenantInformers, log } = context
  const members = informers.of<MemberCluster>(memberClusters)
  const clusters = informers.of<LogicalCluster>(logicalClusters)
  started()
  // Without members there are no classes, and their watches cost nothing.
  await untilOne(members, signal)
  const classes = classKinds.map((kind) => ({ kind, informer: tenantInformers.of<KubeObject>(kind.gvr) }))
  using stack = new DisposableStack()
  const byCluster = new Map<ClassKind, ObjectIndex>(
    classes.map(({ kind, informer }) => [kind, stack.use(new ObjectIndex(informer, (key) => [clusterInKey(key)]))]),
  )
  await Promise.all([members, clusters, ...classes.map(({ informer }) => informer)].map((one) => one.synced(signal)))
  using queue = createKeyQueue({ maxMs: 30_000, fairnessKey: (key) => key })
  const all = (): void => {
    for (const { metadata } of clusters.store.list()) queue.add(metadata.name)
  }
  const unsubscribe = [
    members.onChange(({ before, after }) => {
      if (factsOf(before) !== factsOf(after)) all()
    }),
    clusters.onChange(({ key, before, after }) => {
      if (factsOfCluster(before) !== factsOfCluster(after)) queue.add(key)
    }),
    ...classes.map(({ informer }) => informer.onChange(({ key }) => queue.add(clusterInKey(key)))),
  ]
  for (const end of unsubscribe) stack.defer(end)
  const reconcile = async (name: string, visit: AbortSignal): Promise<void> => {
    const cluster = clusters.store.get(name)
    if (cluster === undefined || cluster.metadata.deletionTimestamp !== undefined) return
    if (!isConditionTrue(cluster, 'Ready')) return
    const admitting = members.store
      .list()
      .filter(({ spec }) => matches(spec?.logicalClusterSelector, cluster.metadata.labels))
    const steps = planClasses(admitting, (kind) => byCluster.get(kind)?.of(name) ?? [])
    for (const step of steps) await apply(step, name, context, visit)
  }
  await runController({ name: 'classes', queue, workers: 4, reconcile, log, signal })
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

/** What of a member decides which classes are shown, as text. */
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
