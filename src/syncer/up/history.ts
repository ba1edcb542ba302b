// The history of a workload upstream (ReplicaSets of a Deployment): one object per template, shared by all members.
// Revisions are counted here, so that `kubectl rollout history` outlives the members in which rollouts happened.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import {
  canonicalJson,
  memberStatusAnnotation,
  memberStatusesOf,
  parseAnnotation,
  templateAnnotation,
  templateOf,
  unchangingHash,
  valueAt,
  workloadKinds,
  type WorkloadKind,
} from '#crds/index.ts'
import type { WrittenTemplate } from '#syncer/context/former-templates.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import { isOrphanIn } from '#syncer/context/orphans.ts'
import { asController, controllerOf } from '#syncer/context/owners.ts'
import { gvrs, type CachedObject } from '#syncer/context/resources.ts'
import type { Reconcile } from '#syncer/context/scope.ts'
import { countOf } from '#syncer/rules/count.ts'
import { isOrphaning } from '#syncer/rules/ending.ts'
import { controllerHere, copyHere } from '#syncer/rules/entitlement.ts'
import { upstreamHistory } from '#syncer/rules/upstream-history.ts'
import type { PodTemplate } from '#syncer/transform/pod-types.ts'
import { withoutHash } from '#syncer/transform/up.ts'
import { deleteLive } from './member-made-copy.ts'
import { revisionAnnotations } from './revision-annotations.ts'
import { claimedHash, hashIn, writtenTemplate } from './written-template.ts'

/** Tenants can write any number into the annotation. Larger ones are ignored: adding one to them might not be exact. */
const maxRevision = 2 ** 40

/** What a member reports about its ReplicaSet of one template. */
export interface ReplicaSetMemberStatus {
  /** Its name in the member: pods there have it as their owner. */
  readonly name: string
  /** spec.replicas */
  readonly desired: number
  readonly replicas: number
  readonly readyReplicas: number
  readonly availableReplicas: number
  readonly fullyLabeledReplicas: number
}

interface Selector {
  readonly matchLabels?: Readonly<Record<string, string>>
}
type History = NonNullable<WorkloadKind['history']>

/**
 * Makes sure that every template has a ReplicaSet upstream with the summed counts of all members, and that the one of
 * the present template has the highest revision.
 */
export async function reconcileHistory(reconcile: Reconcile): Promise<void> {
  const found = workloadWithHistory(reconcile)
  if (reconcile.memberNamespace === undefined || found === undefined) return
  const { kind, history, workload } = found
  // The ReplicaSets stay as they are: garbage collection removes their owner references.
  if (isOrphaning(reconcile.context, workload)) return
  const live = replicaSetsOf(reconcile, kind)
  const known = upstreamHistory(reconcile, workload)
  const present = unchangingHash(templateOf(workload))
  const shown: CachedObject[] = []
  for (const [hash, replicaSet] of newestByHash(reconcile, { live, workload, history })) {
    const copy = known.get(hash)?.[0]
    const written = copy ?? writtenTemplate(reconcile, workload, hash)
    if (written === undefined) continue
    shown.push(replicaSet)
    const orphan = copy === undefined ? orphanOf(reconcile, replicaSet, hash) : undefined
    if (orphan !== undefined) await adopt(reconcile, found, orphan)
    else if (copy === undefined) {
      const revision = hash === present ? highestRevision(known.values(), history) + 1 : undefined
      const origin = { ...found, replicaSet, written: written as WrittenTemplate, hash, revision }
      await createCopy(reconcile, origin)
    } else await updateCopy(reconcile, copy, memberStatusOf(replicaSet))
  }
  await removeOldReports(reconcile, known, shown)
  const revisions = { ...found, known, present }
  if (shown.length > 0) await annotateRevisions(reconcile, revisions)
  await presentHighest(reconcile, revisions)
  await removeOldRevisions(reconcile, revisions)
}

/** The ReplicaSet upstream of a former workload with this template, which the new one has adopted in the member. */
function orphanOf(reconcile: Reconcile, replicaSet: CachedObject, hash: string): CachedObject | undefined {
  const known = reconcile.historyReportedAs(replicaSet.metadata.name ?? '')
  const isSame = known?.metadata.annotations?.[templateAnnotation] === hash
  return isSame && isOrphanIn(known, reconcile.member.name) ? known : undefined
}

/** Makes the workload the controller of the ReplicaSet. The event of the change causes the next reconcile. */
async function adopt(
  { upstreamClient, namespace, signal }: Reconcile,
  { workload }: WorkloadWithHistory,
  { metadata }: CachedObject,
): Promise<void> {
  const { name = '', uid, resourceVersion, ownerReferences = [] } = metadata
  const change = { metadata: { uid, resourceVersion, ownerReferences: [...ownerReferences, asController(workload)] } }
  await upstreamClient.patch(gvrs.replicasets, { namespace, name }, 'merge', change, { signal })
}

/**
 * Called when the upstream ReplicaSet of a workload that was deleted without dependents is gone: deletes the member's
 * ReplicaSet with the same propagation policy.
 */
export async function passOnDeletionOfHistory(reconcile: Reconcile, copy: CachedObject): Promise<void> {
  const { context, name } = reconcile
  const live = reconcile.live('replicasets', name)
  if (live === undefined || !reconcile.isOurs || controllerOf(live) !== undefined || locatorOf(live) !== undefined)
    return
  const hash = claimedHash((live['spec'] as { template?: unknown } | undefined)?.template)
  const { name: shown = '', uid = '', annotations } = copy.metadata
  if (hash === undefined || annotations?.[templateAnnotation] !== hash) return
  await context.guard.confirmGone(reconcile.on('replicasets', shown), { uid })
  const propagationPolicy = context.upstream.orphaning.has(uid) ? 'Orphan' : 'Background'
  await deleteLive(reconcile, 'replicasets', live, { propagationPolicy })
}

/** How many ReplicaSets of one workload a reconcile reads; no workload has so many. */
const maxReplicaSets = 1000

/** The ReplicaSets that the member made of its copy of the workload. */
function replicaSetsOf(reconcile: Reconcile, { kind, gvr }: WorkloadKind): CachedObject[] {
  const { name } = reconcile
  const copy = copyHere(reconcile, gvr.resource, name)?.copy
  if (copy === undefined) return []
  const { uid } = copy.metadata
  const found: CachedObject[] = []
  for (const one of reconcile.controlledBy('replicasets', { kind, name })) {
    if (found.length === maxReplicaSets) break
    if (controllerHere(reconcile, one)?.metadata.uid === uid) found.push(one)
  }
  return found
}

/**
 * One ReplicaSet for each template, by the hash of the template that it names, and always the same one. A template has
 * several if kcp's changes of it are others now, or if somebody forged one: the one with the highest revision counts.
 */
function newestByHash(
  reconcile: Reconcile,
  {
    live,
    workload,
    history: { revisionAnnotation },
  }: { readonly live: readonly CachedObject[]; readonly workload: CachedObject; readonly history: History },
): Map<string, CachedObject> {
  const found = new Map<string, CachedObject>()
  const rankOf = (one: CachedObject): readonly [number, string] => [
    revisionIn(one, revisionAnnotation),
    one.metadata.name ?? '',
  ]
  for (const replicaSet of live) {
    const hash = hashOfReplicaSet(reconcile, workload, replicaSet)
    if (hash === undefined) continue
    const known = found.get(hash)
    const [[revision, name], [before, other]] = [rankOf(replicaSet), known ? rankOf(known) : [-1, '']]
    if (revision > before || (revision === before && name < other)) found.set(hash, replicaSet)
  }
  return found
}

/**
 * The hash of the template that the ReplicaSet names. One from before an adoption names none: it is known by its name,
 * with which the adoption has made the ReplicaSet upstream.
 */
function hashOfReplicaSet(reconcile: Reconcile, workload: CachedObject, live: CachedObject): string | undefined {
  const template = (live['spec'] as { template?: unknown } | undefined)?.template
  const claimed = claimedHash(template)
  if (claimed !== undefined || reconcile.adopted === undefined) return claimed
  const known = reconcile.historyReportedAs(live.metadata.name ?? '')
  const isOfWorkload = known?.metadata.ownerReferences?.some(({ uid }) => uid === workload.metadata.uid) ?? false
  return isOfWorkload ? known?.metadata.annotations?.[templateAnnotation] : hashIn(reconcile, workload, template)
}

interface WorkloadWithHistory {
  readonly kind: WorkloadKind
  readonly history: History
  readonly workload: CachedObject
}

/** The workload of a reconcile. Only one kind of workload has a history, so the name identifies the workload. */
function workloadWithHistory(reconcile: Reconcile): WorkloadWithHistory | undefined {
  for (const kind of workloadKinds) {
    const { history } = kind
    if (history === undefined) continue
    const workload = reconcile.upstream(kind.gvr.resource, reconcile.name)
    if (workload !== undefined) return { kind, history, workload }
  }
  return undefined
}

/** The name that the ReplicaSet has in a member, as that member reported; undefined if it did not. */
export function reportedName(replicaSet: CachedObject, member: string): string | undefined {
  const { name } = parseAnnotation(replicaSet, memberStatusAnnotation(member))
  return typeof name === 'string' ? name : undefined
}

export function memberStatusOf(replicaSet: CachedObject): ReplicaSetMemberStatus {
  const { replicas } = (replicaSet['spec'] ?? {}) as { replicas?: unknown }
  const status = (replicaSet['status'] ?? {}) as Partial<Record<keyof ReplicaSetMemberStatus, unknown>>
  return {
    name: replicaSet.metadata.name ?? '',
    desired: countOf(replicas),
    replicas: countOf(status.replicas),
    readyReplicas: countOf(status.readyReplicas),
    availableReplicas: countOf(status.availableReplicas),
    fullyLabeledReplicas: countOf(status.fullyLabeledReplicas),
  }
}

interface NewRevision extends WorkloadWithHistory {
  readonly replicaSet: CachedObject
  /** The template that the tenant wrote. The text that the member has is not shown. */
  readonly written: WrittenTemplate
  readonly hash: string
  readonly revision: number | undefined
}

async function createCopy(
  reconcile: Reconcile,
  { kind, history, workload, replicaSet, written, hash, revision }: NewRevision,
): Promise<void> {
  const { namespace, member, signal } = reconcile
  const { templateHashLabel } = history
  const name = replicaSet.metadata.name ?? ''
  // The name ends with the hash by which the member tells its templates apart.
  const templateHash = name.slice(reconcile.name.length + 1)
  const selector = valueAt(workload, kind.paths.selector) as Selector | undefined
  // `kubectl rollout undo` restores exactly this template.
  const template = withoutHash(written.template as PodTemplate)
  const former = { ...workload, metadata: { ...workload.metadata, annotations: written.annotations } }
  const recorded = revisionAnnotations(former, {}, { isPresent: true })
  const wishes = revisionAnnotations(workload, presentOnly(recorded), { isPresent: false })
  const report = memberStatusOf(replicaSet)
  const withHash = { ...template.metadata?.labels, [templateHashLabel]: templateHash }
  const object: KubeObject = {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name,
      namespace,
      labels: withHash,
      annotations: {
        ...countsOf(replicaSet.metadata.annotations),
        ...presentOnly({ ...recorded, ...wishes }),
        [templateAnnotation]: hash,
        [memberStatusAnnotation(member.name)]: canonicalJson(report),
        ...(revision !== undefined && { [history.revisionAnnotation]: String(revision) }),
      },
      ownerReferences: [asController(workload)],
    },
    spec: {
      replicas: report.desired,
      selector: { ...selector, matchLabels: { ...selector?.matchLabels, [templateHashLabel]: templateHash } },
      template: { ...template, metadata: { ...template.metadata, labels: withHash } },
    },
  }
  // AlreadyExists: our cache is behind; the event of the existing one causes the next reconcile.
  await reconcile.upstreamClient.create(gvrs.replicasets, object, { signal }).catch(tolerate('AlreadyExists'))
}

/** The replicas for which the member's controller has made the ReplicaSet. */
function countsOf(annotations: Readonly<Record<string, string>> = {}): Record<string, string> {
  const names = ['deployment.kubernetes.io/desired-replicas', 'deployment.kubernetes.io/max-replicas']
  return Object.fromEntries(
    Object.entries(annotations).filter(([name, value]) => names.includes(name) && /^\d+$/.test(value)),
  )
}

/** Writes the member's present report; while its pods come and go, only the last of many reports. */
async function updateCopy(reconcile: Reconcile, copy: CachedObject, report: ReplicaSetMemberStatus): Promise<void> {
  const before = memberStatusesOf<ReplicaSetMemberStatus>(copy as KubeObject)[reconcile.member.name]
  const name = `replicasets ${reconcile.cluster}|${reconcile.namespace}/${copy.metadata.name ?? ''}`
  if (!isSettled(before) && !isSettled(report) && reconcile.isPostponed(name)) return
  reconcile.context.passing.forget(name)
  await writeCopy(reconcile, copy, report)
}

function isSettled(report: ReplicaSetMemberStatus | undefined): boolean {
  return report !== undefined && report.replicas === report.desired && report.availableReplicas === report.desired
}

/** Writes this member's report with the sums over all members. */
async function writeCopy(
  reconcile: Reconcile,
  copy: CachedObject,
  report: ReplicaSetMemberStatus | undefined,
): Promise<void> {
  const { namespace, member, signal } = reconcile
  const annotation = memberStatusAnnotation(member.name)
  const reports = memberStatusesOf<ReplicaSetMemberStatus>(copy as KubeObject)
  const before = reports[member.name]
  if (report === undefined) Reflect.deleteProperty(reports, member.name)
  else reports[member.name] = report
  const client = reconcile.upstreamClient
  const ref = { namespace, name: copy.metadata.name ?? '' }
  const sum = (count: Exclude<keyof ReplicaSetMemberStatus, 'name'>): number =>
    Object.values(reports).reduce((total, one) => total + one[count], 0)
  const spec = { replicas: sum('desired') }
  const isReported = canonicalJson(before ?? null) === canonicalJson(report ?? null)
  const isScaled = (copy['spec'] as { replicas?: number } | undefined)?.replicas !== spec.replicas
  const annotations = { [annotation]: report === undefined ? null : canonicalJson(report) }
  let current = copy
  if (isScaled) {
    const metadata = { resourceVersion: copy.metadata.resourceVersion, annotations }
    current = await client.patch(gvrs.replicasets, ref, 'merge', { metadata, spec }, { signal })
  }
  const status = {
    replicas: sum('replicas'),
    readyReplicas: sum('readyReplicas'),
    availableReplicas: sum('availableReplicas'),
    fullyLabeledReplicas: sum('fullyLabeledReplicas'),
    observedGeneration: current.metadata.generation ?? 0,
  }
  const was = (current['status'] ?? {}) as Record<string, number>
  const isSummed = Object.entries(status).every(([field, value]) => (was[field] ?? 0) === value)
  if (isSummed && (isScaled || isReported)) return
  // The status subresource accepts annotations too.
  const metadata = { resourceVersion: current.metadata.resourceVersion, ...(!isScaled && { annotations }) }
  await client.patch(gvrs.replicasets, ref, 'merge', { metadata, status }, { subresource: 'status', signal })
}

/** Removes this member's reports from ReplicaSets that it no longer has, and from duplicates. */
async function removeOldReports(
  reconcile: Reconcile,
  known: ReadonlyMap<string, CachedObject[]>,
  live: readonly CachedObject[],
): Promise<void> {
  const names = new Set(live.map(({ metadata }) => metadata.name))
  for (const [canonical, ...duplicates] of known.values()) {
    for (const copy of canonical === undefined ? duplicates : [canonical, ...duplicates]) {
      const report = memberStatusesOf<ReplicaSetMemberStatus>(copy as KubeObject)[reconcile.member.name]
      if (report === undefined || (copy === canonical && names.has(report.name))) continue
      await writeCopy(reconcile, copy, undefined)
    }
  }
}

interface Revisions extends WorkloadWithHistory {
  readonly known: ReadonlyMap<string, CachedObject[]>
  readonly present: string
}

function presentOnly(annotations: Readonly<Record<string, string | null>>): Record<string, string> {
  return Object.fromEntries(Object.entries(annotations).filter((one): one is [string, string] => one[1] !== null))
}

/** Writes the annotations of the workload on its history, where they have changed. */
async function annotateRevisions(
  { upstreamClient, namespace, signal }: Reconcile,
  { workload, known, present }: Revisions,
): Promise<void> {
  for (const [hash, [one]] of known) {
    if (one === undefined) continue
    const { name = '', annotations: before = {} } = one.metadata
    const annotations = revisionAnnotations(workload, before, { isPresent: hash === present })
    if (Object.keys(annotations).length === 0) continue
    await upstreamClient
      .patch(gvrs.replicasets, { namespace, name }, 'merge', { metadata: { annotations } }, { signal })
      .catch(tolerate('NotFound'))
  }
}

/** Gives the present template the highest revision, and the workload the number of it. */
async function presentHighest(
  reconcile: Reconcile,
  { kind, history, workload, known, present }: Revisions,
): Promise<void> {
  const [newest] = known.get(present) ?? []
  if (newest === undefined) return
  const { context, cluster, namespace, ref, signal } = reconcile
  const client = reconcile.upstreamClient
  const others = [...known.values()].filter(([first]) => first !== newest)
  const highest = highestRevision(others, history)
  const own = revisionIn(newest, history.revisionAnnotation)
  const revision = own > highest ? own : highest + 1
  const annotations = { [history.revisionAnnotation]: String(revision) }
  if (own !== revision) {
    const { name = '', resourceVersion } = newest.metadata
    const metadata = { resourceVersion, annotations }
    await client.patch(gvrs.replicasets, { namespace, name }, 'merge', { metadata }, { signal })
  }
  const passing = `revision ${cluster}|${namespace}/${ref.name}`
  if (workload.metadata.annotations?.[history.revisionAnnotation] === String(revision)) context.passing.forget(passing)
  // The next report of the member usually brings it along.
  else if (!reconcile.isPostponed(passing))
    await client.patch(kind.gvr, ref, 'merge', { metadata: { annotations } }, { signal })
}

/** Deletes duplicates and what exceeds the history limit. */
async function removeOldRevisions(
  { upstreamClient, namespace, signal }: Reconcile,
  { history, workload, known, present }: Revisions,
): Promise<void> {
  const numberOf = (one: CachedObject): number => revisionIn(one, history.revisionAnnotation)
  const [newest] = known.get(present) ?? []
  const limit = (valueAt(workload, history.limit) as number | undefined) ?? 10
  const canonical = [...known.values()].flatMap(([first]) => (first === undefined ? [] : [first]))
  const idle = canonical.filter((one) => one !== newest && isIdle(one)).sort((a, b) => numberOf(b) - numberOf(a))
  const duplicates = [...known.values()].flatMap(([, ...rest]) => rest).filter(isIdle)
  // Running pods may name a duplicate as their owner: they must not be deleted with it.
  const orphaning = duplicates.map((one) => ({ one, policy: { propagationPolicy: 'Orphan' as const } }))
  for (const { one, policy } of [...idle.slice(limit).map((old) => ({ one: old, policy: {} })), ...orphaning]) {
    const { name = '', uid } = one.metadata
    await upstreamClient.delete(gvrs.replicasets, { namespace, name }, { ...(uid && { uid }), ...policy, signal })
  }
}

function highestRevision(known: Iterable<readonly CachedObject[]>, { revisionAnnotation }: History): number {
  let highest = 0
  for (const [first] of known)
    if (first !== undefined) highest = Math.max(highest, revisionIn(first, revisionAnnotation))
  return highest
}

function revisionIn(replicaSet: CachedObject, revisionAnnotation: string): number {
  const revision = Number(replicaSet.metadata.annotations?.[revisionAnnotation] ?? 0)
  return Number.isInteger(revision) && revision >= 0 && revision < maxRevision ? revision : 0
}

function isIdle(replicaSet: CachedObject): boolean {
  return Object.keys(memberStatusesOf(replicaSet as KubeObject)).length === 0
}
