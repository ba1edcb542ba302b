// Keeps the Secrets of spec.kubeconfigs up to date: reads each Secret, plans a change, and writes it. May run again at
// any time.
import { clusterIdOf } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { timestamp } from '#async/index.ts'
import type { DeepReadonly, KubeClient } from '#client/index.ts'
import { maxKubeconfigSecrets, type KubeconfigEntry, type LogicalCluster } from '#crds/index.ts'
import type { CredentialIssuer } from '#operator/framework/operator-context.ts'
import { issueCredentials } from './credentials.ts'
import type { KubeconfigsOutcome, Problem } from './outcome.ts'
import {
  formatLabels,
  frameOf,
  hashAnnotation,
  hashOf,
  isOurs,
  ownerAnnotation,
  planSecret,
  renewAfterAnnotation,
  type Secret,
  secretDataOf,
  type SecretRef,
  secretRefOf,
  type Wanted,
} from './plan-secret.ts'

export interface KeepContext {
  /** The API in which LogicalClusters and the Secrets are. */
  readonly clusters: KubeClient
  /** The API of the logical cluster. */
  readonly virtual: KubeClient
  readonly issuer: CredentialIssuer
  /** The `server` of the kubeconfigs. */
  readonly server: string
  /** Milliseconds since 1970. */
  readonly nowMs: number
  /** Reports a change, for an Event. */
  readonly changed: (reason: string, message: string) => Promise<void>
}

type Cluster = DeepReadonly<LogicalCluster>

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
const fieldManager = 'kcp-operator'
/** Where Secrets may not be watched, one that was deleted or changed is written again after this time at the latest. */
const lookAgainSeconds = 600
const retrySeconds = 30

/** Whether there are or may be Secrets to keep. */
export function hasKubeconfigs({ spec, status }: Cluster): boolean {
  return (spec?.kubeconfigs ?? []).length > 0 || (status?.kubeconfigs ?? []).length > 0
}

/** The Secrets of all entries, then of former entries: the value of status.kubeconfigs before a Secret is written. */
export function claimedSecrets({ spec, status }: Cluster): SecretRef[] {
  const all = [...(spec?.kubeconfigs ?? []).map(secretRefOf), ...(status?.kubeconfigs ?? [])]
  const byKey = new Map(all.map(({ namespace, name }) => [`${namespace}/${name}`, { namespace, name }]))
  return [...byKey.values()].slice(0, maxKubeconfigSecrets)
}

/**
 * Writes the Secrets of all entries and deletes those of former ones. Rejects with errors that go away by themselves.
 */
export async function keepKubeconfigs(
  object: Cluster,
  context: KeepContext,
  signal: AbortSignal,
): Promise<KubeconfigsOutcome> {
  const problems: Problem[] = []
  const kept = new Map<string, SecretRef>()
  let dueMs = context.nowMs + lookAgainSeconds * 1000
  let written = 0
  for (const entry of object.spec?.kubeconfigs ?? []) {
    const ref = secretRefOf(entry)
    const found = kept.has(keyOf(ref)) ? duplicate(ref) : await keepSecret(object, entry, context, signal)
    kept.set(keyOf(ref), ref)
    if (typeof found === 'number') {
      dueMs = Math.min(dueMs, found)
      written++
    } else problems.push(found)
  }
  for (const ref of object.status?.kubeconfigs ?? []) {
    if (kept.has(keyOf(ref))) continue
    const problem = await removeSecret(object, ref, context, signal)
    if (problem === undefined) continue
    problems.push(problem)
    kept.set(keyOf(ref), { ...ref })
  }
  const untilDue = Math.max(1, Math.ceil((dueMs - context.nowMs) / 1000))
  const requeueAfterSeconds = problems.length > 0 ? Math.min(retrySeconds, untilDue) : untilDue
  return { secrets: [...kept.values()].slice(0, maxKubeconfigSecrets), written, problems, requeueAfterSeconds }
}

/**
 * Deletes all Secrets of a LogicalCluster that goes. Those that we may not delete stay: the logical cluster they are
 * for is gone, and no other accepts what is in them.
 */
export async function removeKubeconfigs(object: Cluster, context: KeepContext, signal: AbortSignal): Promise<void> {
  for (const ref of claimedSecrets(object)) await removeSecret(object, ref, context, signal)
}

/**
 * Keeps the Secret of one entry. Resolves with the time at which it must be renewed (milliseconds since 1970), or with
 * the problem that prevents the right Secret.
 */
async function keepSecret(
  { metadata }: Cluster,
  entry: DeepReadonly<KubeconfigEntry>,
  context: KeepContext,
  signal: AbortSignal,
): Promise<number | Problem> {
  const { clusters, nowMs, server, issuer } = context
  const ref = secretRefOf(entry)
  const wanted: Wanted = { entry, uid: metadata.uid ?? '', server, ca: issuer.servingCa }
  const invalid = subjectProblem(entry, ref)
  if (invalid !== undefined) return invalid
  try {
    const secret = await clusters.tryGet<Secret>(secrets, ref, { signal })
    const step = planSecret(wanted, secret, nowMs)
    if (step.do === 'nothing') return step.dueMs
    if (step.do === 'refuse') return notOurs(ref)
    if (step.do === 'replace' && secret !== undefined) await deleteExactly(secret, ref, context, signal)
    const present = step.do === 'replace' ? undefined : secret
    const written = await writeSecret({ name: metadata.name, wanted, present }, context, signal)
    if (typeof written !== 'number') return written
    const what =
      present === undefined ? 'wrote' : step.do === 'write' && step.why === 'RenewalDue' ? 'renewed' : 'updated'
    await context.changed(present === undefined ? 'KubeconfigWritten' : 'KubeconfigRenewed', `${what} ${textOf(ref)}`)
    return written
  } catch (error) {
    const problem = problemOf(error, ref)
    if (problem === undefined) throw error
    return problem
  }
}

interface Writing {
  /** The name of the LogicalCluster. */
  readonly name: string
  readonly wanted: Wanted
  readonly present: Secret | undefined
}

async function writeSecret(
  { name: cluster, wanted, present }: Writing,
  { clusters, virtual, issuer, nowMs }: KeepContext,
  signal: AbortSignal,
): Promise<number | Problem> {
  const { entry, uid, server, ca } = wanted
  const ref = secretRefOf(entry)
  const { subject, format } = entry
  const issued = await issueCredentials(subject, { issuer, virtual, id: clusterIdOf(uid), nowMs }, signal).catch(
    (error: unknown) => {
      if (subject?.kind === 'ServiceAccount' && isStatusError(error, 'NotFound')) return undefined
      throw error
    },
  )
  if (issued === undefined) return accountMissing(ref, subject?.namespace, subject?.name)
  const { credentials, renewAfterMs } = issued
  const data = secretDataOf(format, { ...credentials, cluster, server, ca })
  const { type, labels } = frameOf(format)
  const annotations = {
    [ownerAnnotation]: uid,
    [renewAfterAnnotation]: timestamp(renewAfterMs),
    [hashAnnotation]: hashOf(wanted, data),
  }
  if (present === undefined) {
    const metadata = { ...ref, labels: { ...labels }, annotations }
    const secret: Secret = { apiVersion: 'v1', kind: 'Secret', metadata, type, data: { ...data } }
    await clusters.create(secrets, secret, { fieldManager, signal })
  } else {
    const { resourceVersion } = present.metadata
    const patch = {
      metadata: { resourceVersion, annotations, labels: { ...nulls(formatLabels), ...labels } },
      data: { ...nulls(Object.keys(present.data ?? {})), ...data },
    }
    await clusters.patch(secrets, ref, 'merge', patch, { fieldManager, signal })
  }
  return renewAfterMs
}

async function removeSecret(
  { metadata }: Cluster,
  ref: SecretRef,
  context: KeepContext,
  signal: AbortSignal,
): Promise<Problem | undefined> {
  try {
    const secret = await context.clusters.tryGet<Secret>(secrets, ref, { signal })
    if (secret === undefined || !isOurs(secret, metadata.uid ?? '')) return undefined
    await deleteExactly(secret, ref, context, signal)
    await context.changed('KubeconfigRemoved', `deleted ${textOf(ref)}`)
    return undefined
  } catch (error) {
    const problem = problemOf(error, ref)
    if (problem === undefined) throw error
    return problem
  }
}

/** Deletes this Secret, not one that somebody has made or changed since it was read. */
async function deleteExactly(
  { metadata: { uid = '', resourceVersion = '' } }: Secret,
  ref: SecretRef,
  { clusters }: KeepContext,
  signal: AbortSignal,
): Promise<void> {
  await clusters.delete(secrets, ref, { uid, resourceVersion, signal }).catch(tolerate('NotFound'))
}

/** The problem with the subject of an entry; undefined if it is valid. The CRD's CEL rules check the same on hosts. */
function subjectProblem({ subject }: DeepReadonly<KubeconfigEntry>, ref: SecretRef): Problem | undefined {
  if (subject?.kind !== 'ServiceAccount' || (subject.namespace ?? '') !== '') return undefined
  return {
    reason: 'SubjectInvalid',
    message: `${textOf(ref)}: subject.namespace is missing; a ServiceAccount needs one`,
  }
}

function duplicate(ref: SecretRef): Problem {
  const message = `${textOf(ref)}: two entries name it; give one of them another name`
  return { reason: 'DuplicateSecret', message }
}

function notOurs(ref: SecretRef): Problem {
  const message = `${textOf(ref)} exists and was not made for this LogicalCluster; delete it, or choose another name`
  return { reason: 'SecretNotOurs', message }
}

function accountMissing(ref: SecretRef, namespace = '', name = ''): Problem {
  const message = `${textOf(ref)}: ServiceAccount "${namespace}/${name}" does not exist in the logical cluster; create it there`
  return { reason: 'ServiceAccountMissing', message }
}

function nulls(keys: readonly string[]): Record<string, null> {
  return Object.fromEntries(keys.map((key) => [key, null]))
}

function keyOf({ namespace, name }: SecretRef): string {
  return `${namespace}/${name}`
}

function textOf(ref: SecretRef): string {
  return `Secret "${keyOf(ref)}"`
}

/** The role that grants what is needed, see scripts/rbac-rules.ts. */
const role = 'kcp-kubeconfig-secrets'

/** The problem that somebody must solve after a failed write or deletion; undefined if a retry may succeed. */
function problemOf(error: unknown, { namespace, name }: SecretRef): Problem | undefined {
  const secret = `Secret "${namespace}/${name}"`
  if (isStatusError(error, 'NotFound'))
    return {
      reason: 'NamespaceMissing',
      message: `${secret}: namespace "${namespace}" does not exist; create it, or remove the entry`,
    }
  if (isStatusError(error, 'Forbidden'))
    return {
      reason: 'Forbidden',
      message: `${secret}: ${error.message}; bind ClusterRole ${role} to the operator in namespace "${namespace}", or remove the entry`,
    }
  if (isStatusError(error, 'Invalid') || isStatusError(error, 'BadRequest'))
    return { reason: 'Refused', message: `${secret}: ${error.message}` }
  return undefined
}
