// APIBindings: binds the newest released revision of an export, tells what is in force, and ends a binding as its
// deletion policy says.
import { isDeepStrictEqual } from 'node:util'
import { groupResourceText } from '#apimachinery/meta/index.ts'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { systemClock, timestamp } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import {
  apiBindingFinalizer,
  apiBindings,
  claimId,
  identityHashOf,
  type APIBinding,
  type APIBindingStatus,
  type BoundResource,
  type ExportAdmission,
  type PermissionClaim,
} from '#crds/index.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import type { ExportFacts, RevisionResource, SharedApis } from '#reconcile/object-graph/index.ts'
import { deleteBatch, DeletionBudget } from './delete-batch.ts'
import { type ControllerContext, reconcileChanged, retryAfterSeconds } from './framework.ts'
import { isReleased, releaseOf } from './export-rollout.ts'
import { condition, type SharingUpdate, withConditions } from './sharing-conditions.ts'

const fieldManager = 'kcp-api-bindings'
/** Between two looks at a binding that waits for its objects to go, or whose name conflicts. */
const waitSeconds = 5
/** Between two looks at the objects that keep a binding from the newest revision. */
const heldSeconds = 30

/** Reconciles every APIBinding until the signal aborts. */
export async function startApiBindings(context: ControllerContext): Promise<void> {
  const { sharing } = context
  if (sharing === undefined) return
  await sharing.ready()
  await reconcileChanged(context, {
    name: 'api-bindings',
    follow: {
      [groupResourceText(apiBindings)]: ({ key: { cluster, name } }, enqueue) => enqueue({ cluster, name }),
    },
    listen: (enqueue) =>
      sharing.follow({
        onBinding: () => undefined,
        onExport(facts, exists, before) {
          // The status of an export changes with each consumer; that concerns no other consumer.
          if (exists && before !== undefined && !isNews(facts, before)) return
          const { cluster, name, uid } = facts
          for (const facts of sharing.bindingsTo(sharing.nameOf(cluster) ?? '', name))
            enqueue({ cluster: facts.cluster, name: facts.name })
          for (const facts of sharing.bindingsOf(uid)) enqueue({ cluster: facts.cluster, name: facts.name })
        },
      }),
    reconcile: async ({ cluster, name }, { client, signal }) => {
      const binding = await client.tryGet<APIBinding>(apiBindings, { name }, { signal })
      if (binding === undefined) return undefined
      const work: Work = { cluster, binding, client, sharing, context, signal }
      return binding.metadata.deletionTimestamp === undefined ? bind(work) : unbind(work)
    },
  })
}

function isNews(now: ExportFacts, before: ExportFacts): boolean {
  const { revision, released, claims, uid, admission, cluster, order, releasedGroups } = before
  if (now.cluster !== cluster) return true
  if (now.claims !== claims || now.admission !== admission) return true
  if (now.order !== order || now.releasedGroups !== releasedGroups) return true
  return now.revision !== revision || now.released !== released || now.uid !== uid
}

interface Work {
  readonly cluster: string
  readonly binding: APIBinding
  readonly client: KubeClient
  readonly sharing: SharedApis
  readonly context: ControllerContext
  readonly signal: AbortSignal
}

async function bind(work: Work): Promise<ReconcileResult | undefined> {
  const { binding, cluster, sharing, signal } = work
  const { path, name: exportName = '' } = binding.spec?.reference?.export ?? {}
  const bound = binding.status?.exportUID
  // The identity comes first: the export may have another owner than the reference says.
  const found =
    (bound === undefined ? undefined : sharing.exportByUid(bound)) ??
    sharing.exportOf({ cluster, path: path === '' ? undefined : path, exportName })
  if (found === undefined || (bound !== undefined && found.uid !== bound)) {
    const message =
      found === undefined
        ? `APIExport "${exportName}" of logical cluster "${path ?? 'this one'}" does not exist.`
        : `APIExport "${exportName}" was deleted and created again; delete this binding and create it again to use the new one.`
    return report(work, binding.status ?? {}, [condition('APIExportValid', { reason: 'APIExportNotFound', message })])
  }
  if (found.revision === 0)
    return report(work, binding.status ?? {}, [
      condition('APIExportValid', { reason: 'NoRevision', message: 'The export has no valid definitions yet.' }),
    ])
  const next = await nextRevision(work, found)
  const clusterName = work.sharing.nameOf(found.cluster) ?? ''
  const of = { clusterName, exportUid: found.uid, revision: next.revision }
  const resources = await sharing.resourcesOf(of, signal)
  if (resources === undefined)
    return report(work, binding.status ?? {}, [
      condition('APIExportValid', { reason: 'RevisionMissing', message: `Revision ${next.revision} is gone.` }),
    ])
  const left = bound === undefined ? await leftObjects(work, resources) : undefined
  if (left !== undefined) return report(work, binding.status ?? {}, [condition('BindingUpToDate', left)])
  const status = boundStatus(work, found, next.revision, resources)
  const { problem } = next
  const conflict = await report(work, status, [
    condition('APIExportValid'),
    condition('InitialBindingCompleted'),
    condition('BindingUpToDate', problem),
    ...claimConditions(binding, claimsOf(found)),
    ...admissionConditions(binding, admissionOf(found)),
  ])
  return problem?.reason === 'ObjectsWouldBreak' ? { requeueAfterSeconds: heldSeconds } : conflict
}

/** Why a new binding waits: objects that an earlier binding left would become those of this export. */
async function leftObjects({ binding, cluster, sharing, signal }: Work, resources: readonly RevisionResource[]) {
  if (binding.spec?.adoptExisting === true) return undefined
  const counts = await sharing.countObjects(cluster, resources.map(groupResourceText), signal)
  const left = [...counts].filter(([, count]) => count > 0).map(([resource, count]) => `${count} of ${resource}`)
  if (left.length === 0) return undefined
  const message = `Objects exist that an earlier binding left: ${left.join(', ')}. Set spec.adoptExisting to give them to this export.`
  return { reason: 'ObjectsLeft', message }
}

/** The revision that the binding should have, and why that is not the newest one. */
async function nextRevision({ cluster, binding, sharing, signal }: Work, found: ExportFacts) {
  const current = binding.status?.revision
  if (current === undefined) return { revision: found.revision }
  const facts = { cluster, exportUid: binding.status?.exportUID, revision: current }
  if (current === found.revision) return { revision: current }
  const objections = await sharing.objections(facts, found.revision, signal)
  if (objections.length > 0)
    return {
      revision: current,
      problem: {
        reason: 'ObjectsWouldBreak',
        message: `Revision ${found.revision} of the export is not used here: ${objections.join('; ')}`.slice(0, 2000),
      },
    }
  const release = releaseOf(found)
  const { groups, order } = release
  const extent =
    groups < order.length ? `the first ${groups} of ${order.length} groups` : `${found.released} % of the consumers`
  if (!isReleased({ ...facts, labels: binding.metadata.labels }, release, sharing))
    return {
      revision: current,
      problem: {
        reason: 'NotReleased',
        severity: 'Info' as const,
        message: `Revision ${found.revision} is released to ${extent}, and not yet to this one.`,
      },
    }
  return { revision: found.revision }
}

function claimsOf({ claims }: ExportFacts): PermissionClaim[] {
  return claims === '' ? [] : (parseJsonText(claims) as unknown as PermissionClaim[])
}

function boundStatus(
  { binding, sharing }: Work,
  found: ExportFacts,
  revision: number,
  resources: readonly RevisionResource[],
): APIBindingStatus {
  const identityHash = identityHashOf(found.uid)
  const boundResources = resources.map(({ group, resource, schemaName, uid, storageVersion }): BoundResource => ({
    group,
    resource,
    schema: { name: schemaName, UID: uid, identityHash },
    storageVersions: [storageVersion],
  }))
  const claims = claimsOf(found)
  const { exportAdmission: _former, ...former } = binding.status ?? {}
  const brought = admissionOf(found)
  return {
    ...former,
    ...(brought !== undefined && { exportAdmission: shortened(brought) }),
    apiExportClusterName: sharing.nameOf(found.cluster) ?? '',
    exportUID: found.uid,
    revision,
    boundResources,
    phase: 'Bound',
    exportPermissionClaims: claims,
    appliedPermissionClaims: (binding.spec?.permissionClaims ?? []).filter(
      (claim) => claim.state === 'Accepted' && claims.some((asked) => claimId(asked) === claimId(claim)),
    ),
  }
}

function claimConditions({ spec }: APIBinding, asked: readonly PermissionClaim[]): SharingUpdate[] {
  const answers = spec?.permissionClaims ?? []
  const unknown = answers.filter((answer) => !asked.some((claim) => claimId(claim) === claimId(answer)))
  const open = asked.filter((claim) => !answers.some((answer) => claimId(claim) === claimId(answer)))
  const names = (claims: readonly PermissionClaim[]): string =>
    claims.map(({ group = '', resource }) => groupResourceText({ group, resource })).join(', ')
  const mismatch =
    unknown.length > 0
      ? `The export does not claim ${names(unknown)}.`
      : open.length > 0
        ? `The export claims ${names(open)}: accept or reject it in spec.permissionClaims.`
        : undefined
  return [
    condition(
      'PermissionClaimsValid',
      mismatch === undefined
        ? undefined
        : { reason: 'PermissionClaimsMismatch', message: mismatch, severity: 'Warning' },
    ),
    condition('PermissionClaimsApplied'),
  ]
}

function admissionOf({ admission }: ExportFacts): ExportAdmission | undefined {
  return admission === '' ? undefined : (parseJsonText(admission) as unknown as ExportAdmission)
}

/** Names in a status and in a message: bindings are small, because an export may have thousands. */
const maxNames = 5

function shortened({ webhooks = [], policies = [], ...others }: ExportAdmission): ExportAdmission {
  return { ...others, webhooks: webhooks.slice(0, maxNames), policies: policies.slice(0, maxNames) }
}

/** What the consumer says of the admission that the export brings; nothing for an export that never brought any. */
function admissionConditions({ spec, status }: APIBinding, brought: ExportAdmission | undefined): SharingUpdate[] {
  const type = 'AdmissionAnswered'
  if (brought === undefined)
    return status?.conditions?.some((known) => known.type === type) === true ? [condition(type)] : []
  const { webhooks = [], policies = [], required = false } = brought
  const { admission = {} } = spec ?? {}
  const isMissing = (part: 'webhooks' | 'policies', names: readonly string[]): boolean =>
    required ? admission[part] !== 'Accepted' : names.length > 0 && admission[part] === undefined
  const open = [
    ...(isMissing('webhooks', webhooks) ? [`webhooks (${listOf(webhooks)})`] : []),
    ...(isMissing('policies', policies) ? [`policies (${listOf(policies)})`] : []),
  ]
  if (open.length === 0) return [condition(type)]
  const parts = open.join(' and ')
  const problem = required
    ? {
        reason: 'AdmissionRequired',
        severity: 'Warning' as const,
        message: `The export requires its ${parts} to act here, and objects cannot be written before: set spec.admission.`,
      }
    : {
        reason: 'AdmissionNotAnswered',
        severity: 'Info' as const,
        message: `The export brings ${parts}, which do not act here: accept or reject them in spec.admission.`,
      }
  return [condition(type, problem)]
}

function listOf(names: readonly string[]): string {
  const more = names.length > maxNames ? ` and ${names.length - maxNames} more` : ''
  return names.length === 0 ? 'none yet' : `${names.slice(0, maxNames).join(', ')}${more}`
}

async function report(
  { binding, client, signal }: Work,
  status: APIBindingStatus,
  updates: readonly SharingUpdate[],
): Promise<ReconcileResult | undefined> {
  const write = (next: APIBindingStatus) =>
    client.update(apiBindings, { ...binding, status: next }, { subresource: 'status', fieldManager, signal })
  const now = timestamp(systemClock.now())
  const next = withReady({ ...status, phase: status.phase ?? 'Binding' }, updates, now)
  if (isDeepStrictEqual(next, binding.status)) return undefined
  try {
    await write(next)
    return undefined
  } catch (error) {
    // Admission refuses a resource whose name is taken.
    if (!isStatusError(error, 'Invalid')) throw error
    const conflict = { reason: 'NamingConflicts', message: error.message }
    const former = { ...binding.status, phase: binding.status?.phase ?? ('Binding' as const) }
    const conflicting = withReady(former, [condition('APIExportValid'), condition('BindingUpToDate', conflict)], now)
    if (!isDeepStrictEqual(conflicting, binding.status)) await write(conflicting)
    return { requeueAfterSeconds: waitSeconds }
  }
}

/** The status with these conditions, and the condition Ready that sums them up. */
function withReady(status: APIBindingStatus, updates: readonly SharingUpdate[], now: string): APIBindingStatus {
  const conditions = withConditions(status.conditions, updates, now)
  const isBound = status.phase === 'Bound'
  const problem = conditions.find(
    ({ type, status: state, severity }) =>
      type !== 'Ready' && state === 'False' && (severity === 'Error' || severity === undefined),
  )
  const ready =
    problem === undefined && isBound
      ? condition('Ready')
      : condition('Ready', {
          reason: problem?.reason ?? 'Binding',
          message: problem?.message ?? 'The export is not bound yet.',
        })
  // A consumer that keeps an older revision works as before.
  const isServed = isBound && problem?.reason === 'ObjectsWouldBreak'
  return { ...status, conditions: withConditions(conditions, [isServed ? condition('Ready') : ready], now) }
}

async function unbind(work: Work): Promise<ReconcileResult | undefined> {
  const { binding, cluster, client, sharing, signal } = work
  if (binding.metadata.finalizers?.includes(apiBindingFinalizer) !== true) return undefined
  const { deletionPolicy = 'Hold' } = binding.spec ?? {}
  const resources = (binding.status?.boundResources ?? []).map(groupResourceText)
  if (deletionPolicy !== 'Orphan' && resources.length > 0) {
    if (deletionPolicy === 'Delete') await deleteObjects(work)
    const counts = await sharing.countObjects(cluster, resources, signal)
    const left = [...counts].filter(([, count]) => count > 0)
    if (left.length > 0) return waitForObjects(work, left, deletionPolicy)
  }
  const finalizers = (binding.metadata.finalizers ?? []).filter((other) => other !== apiBindingFinalizer)
  const released = { ...binding, metadata: { ...binding.metadata, finalizers } }
  await client.update(apiBindings, released, { fieldManager, signal }).catch(tolerate('NotFound', 'Conflict'))
  return undefined
}

async function deleteObjects({ binding, client, sharing, signal }: Work): Promise<void> {
  const { exportUID: exportUid = '', apiExportClusterName: clusterName = '', revision = 0 } = binding.status ?? {}
  const budget = new DeletionBudget()
  const resources = (await sharing.resourcesOf({ clusterName, exportUid, revision }, signal)) ?? []
  for (const { group, resource, storageVersion } of resources)
    await deleteBatch(client, { gvr: { group, version: storageVersion, resource } }, budget, signal).catch(
      tolerate('NotFound'),
    )
}

async function waitForObjects(
  { binding, client, signal }: Work,
  left: readonly (readonly [resource: string, count: number])[],
  policy: 'Hold' | 'Delete',
): Promise<ReconcileResult> {
  const objects = left.map(([resource, count]) => `${count} of ${resource}`).join(', ')
  const problem =
    policy === 'Hold'
      ? {
          reason: 'ObjectsExist',
          message: `The binding is kept while objects exist: ${objects}. Delete them, or set spec.deletionPolicy to Delete or Orphan.`,
        }
      : { reason: 'DeletionInProgress', message: `Objects are being deleted: ${objects}.` }
  const now = timestamp(systemClock.now())
  const conditions = withConditions(
    binding.status?.conditions,
    [condition('BindingResourceDeleteSuccess', problem), condition('Ready', problem)],
    now,
  )
  if (!isDeepStrictEqual(conditions, binding.status?.conditions))
    await client
      .update(
        apiBindings,
        { ...binding, status: { ...binding.status, conditions } },
        { subresource: 'status', fieldManager, signal },
      )
      .catch(tolerate('NotFound', 'Conflict'))
  const since = binding.metadata.deletionTimestamp ?? now
  return { requeueAfterSeconds: Math.min(waitSeconds, retryAfterSeconds(since, systemClock.now())) }
}
