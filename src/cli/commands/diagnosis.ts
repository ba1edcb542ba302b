// The faults of an installation with their remedies, from what was observed of the installation. Pure.
import { ageText, remedyOf } from '#explain/index.ts'
import type { Condition, KubeList, KubeObject } from '#apimachinery/meta/index.ts'
import { bucketCount, replicaOf, type ReplicaLease } from '#store/ownership/index.ts'

/** The result of one request, or why it failed. */
export type ApiResponse<T> = { readonly value: T } | { readonly error: string }

export interface Finding {
  readonly ok: boolean
  /** The finding as a sentence. */
  readonly what: string
  /** The remedy; absent where nothing is wrong. */
  readonly todo?: string
}

export interface Watched extends KubeObject {
  status?: { conditions?: Condition[] }
}

export interface Lease extends KubeObject {
  spec?: { holderIdentity?: string; leaseDurationSeconds?: number; renewTime?: string }
}

export interface ApiService extends KubeObject {
  spec?: { caBundle?: string }
  status?: { conditions?: Condition[] }
}

const minMinor = 30
/** How many objects of one kind are reported by name; the others are counted. */
export const maxNamed = 50

/** Whether the host responds, and has a version that we support. */
export function hostFinding(version: ApiResponse<{ readonly gitVersion?: string }>): Finding {
  if ('error' in version)
    return wrong(`the host does not answer: ${version.error}`, 'check --kubeconfig, and that its API server runs')
  const { gitVersion = 'unknown' } = version.value
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(gitVersion) ?? []
  if (Number(major) === 1 && Number(minor) >= minMinor) return right(`the host answers: Kubernetes ${gitVersion}`)
  return wrong(`the host is Kubernetes ${gitVersion}`, `upgrade it: kcp needs 1.${minMinor} or newer`)
}

/** Whether our kinds are served; `missing` names the kinds that are not served. */
export function kindsFinding(
  missing: ApiResponse<readonly string[]>,
  { starts }: { readonly starts: string },
): Finding {
  if ('error' in missing)
    return wrong(
      `the CustomResourceDefinitions of kcp cannot be checked: ${missing.error}`,
      'use an identity that may list them in all namespaces',
    )
  if (missing.value.length === 0) return right('the CustomResourceDefinitions of kcp are served')
  return wrong(
    `CustomResourceDefinitions of kcp are missing: ${missing.value.join(', ')}`,
    `start ${starts}, which installs them; if it runs, see its log`,
  )
}

/** Whether the host's aggregator finds us. */
export function apiServiceFinding(found: ApiResponse<ApiService | undefined>): Finding {
  const what = 'APIService v1alpha1.virtual.kcp.dev'
  if ('error' in found) return wrong(`${what} cannot be read: ${found.error}`, 'use an identity that may get it')
  if (found.value === undefined)
    return wrong(
      `${what} is missing: tenants cannot connect through the host`,
      'start kcp apiserver, which registers it',
    )
  const available = conditionOf(found.value, 'Available')
  if (available?.status === 'True') return right(`${what} is Available`)
  const why = available === undefined ? 'the host has not checked it yet' : available.message
  return wrong(
    `${what} is not Available: ${why}`,
    "check that kcp apiserver runs, and that the host's API server reaches Service kcp-system/kcp-apiserver",
  )
}

/** Whether the direct listener responds at its published address, with our certificate. */
export function addressFinding(url: ApiResponse<string | undefined>, ready: ApiResponse<number> | undefined): Finding {
  if ('error' in url) return wrong(`the address of kcp apiserver cannot be read: ${url.error}`, readAddress)
  if (url.value === undefined) return wrong('kcp apiserver has published no address', 'start kcp apiserver')
  const what = `the direct listener ${url.value}`
  if (ready === undefined)
    return wrong(`${what} was not checked: the CA of its certificate is unknown`, 'mend the APIService, see above')
  if ('error' in ready)
    return wrong(
      `${what} does not answer from here: ${ready.error}`,
      'check that kcp apiserver runs, and --advertise-address (chart: direct.host), which must be reachable from here',
    )
  if (ready.value === 200) return right(`${what} is ready`)
  return wrong(
    `${what} is not ready: /readyz answers ${ready.value}`,
    "request '/readyz?verbose' there for the reason, and see its log",
  )
}

const readAddress = 'use an identity that may get ConfigMap kcp-system/kcp-apiserver'

/** Whether a kcp operator is the leader, which renews the Lease every two seconds. */
export function leaderFinding(found: ApiResponse<Lease | undefined>, nowMs: number): Finding {
  const start = 'start kcp operator; if it runs, see its log'
  if ('error' in found)
    return wrong(`Lease kcp-system/kcp-operator cannot be read: ${found.error}`, 'use an identity that may get it')
  const { holderIdentity = '', leaseDurationSeconds = 15, renewTime } = found.value?.spec ?? {}
  if (holderIdentity === '') return wrong('no kcp operator is the leader', start)
  const ageMs = nowMs - Date.parse(renewTime ?? '')
  if (ageMs <= leaseDurationSeconds * 1000) return right(`kcp operator "${holderIdentity}" is the leader`)
  return wrong(`kcp operator "${holderIdentity}" last renewed its Lease ${ageText(ageMs)} ago`, start)
}

/**
 * The fault of an object; undefined if there is none. `conditions` must be True if present; the first must be
 * present.
 */
export function objectFinding(
  object: Watched,
  {
    kind,
    conditions,
    nowMs,
  }: { readonly kind: string; readonly conditions: readonly string[]; readonly nowMs: number },
): Finding | undefined {
  const { name = '', deletionTimestamp } = object.metadata
  const what = `${kind} "${name}"`
  const operator = 'check that kcp operator runs, and see its log'
  if (deletionTimestamp !== undefined) {
    const waits =
      (conditionOf(object, 'ContentDeleted') ?? conditionOf(object, 'Schedulable'))?.message ?? finalizersText(object)
    return wrong(
      `${what} has been terminating for ${ageText(nowMs - Date.parse(deletionTimestamp))}: ${waits}`,
      operator,
    )
  }
  const [first = ''] = conditions
  if (conditionOf(object, first) === undefined)
    return wrong(`${what} has no condition ${first}: no kcp operator has handled it yet`, operator)
  const bad = conditions
    .map((type) => conditionOf(object, type))
    .filter((condition) => condition !== undefined && condition.status !== 'True') as Condition[]
  for (const type of problemConditions) {
    const problem = conditionOf(object, type)
    if (problem?.status === 'True') bad.push(problem)
  }
  if (bad.length === 0) return undefined
  const texts = bad.map(
    ({ type, status, reason, message, lastTransitionTime }) =>
      `${type}=${status} for ${ageText(nowMs - Date.parse(lastTransitionTime))} (${reason}): ${message}`,
  )
  return wrong(
    `${what}: ${[...new Set(texts)].join('; ')}`,
    bad.map(({ reason }) => remedyOf(reason)).find(Boolean) ?? operator,
  )
}

/** One finding if all objects of a kind are well, else the findings of the first ones that are not. */
export function objectsFindings(
  plural: string,
  seen: ApiResponse<{ readonly total: number; readonly bad: number; readonly findings: readonly Finding[] }>,
): Finding[] {
  if ('error' in seen) return [wrong(`${plural} cannot be listed: ${seen.error}`, 'use an identity that may list them')]
  const { total, bad, findings } = seen.value
  if (bad === 0) return [right(`${plural}: ${total}, all well`)]
  const more =
    bad > findings.length
      ? [wrong(`${plural}: ${bad - findings.length} more have problems`, 'start with those above')]
      : []
  return [...findings, ...more]
}

/** The findings as lines for a terminal. */
export function findingsText(findings: readonly Finding[]): string {
  return findings
    .map(({ ok, what, todo }) => `${ok ? 'ok   ' : 'WRONG'} ${what}${todo === undefined ? '' : `\n      -> ${todo}`}`)
    .join('\n')
}

/** Conditions that are True while something is wrong. */
const problemConditions = ['DeletionsSuspended', 'SyncFailing'] as const

function conditionOf({ status }: Watched | ApiService, type: string): Condition | undefined {
  return status?.conditions?.find((condition) => condition.type === type)
}

function finalizersText({ metadata }: Watched): string {
  return `it waits for finalizers ${(metadata.finalizers ?? []).join(', ')}`
}

function right(what: string): Finding {
  return { ok: true, what }
}

function wrong(what: string, todo: string): Finding {
  return { ok: false, what, todo }
}

const start = 'start kcp apiserver; if it runs, see its log'

/** One finding for each replica, and one for buckets of logical clusters that none or several claim. */
export function replicasFindings(found: ApiResponse<KubeList<ReplicaLease>>, nowMs: number): Finding[] {
  if ('error' in found)
    return [wrong(`Leases of kcp apiserver cannot be listed: ${found.error}`, 'use an identity that may list them')]
  const leases = found.value.items
  if (leases.length === 0) return [wrong('no kcp apiserver has a Lease in kcp-system', start)]
  return [...leases.map((lease) => replicaFinding(lease, nowMs)), ...bucketFindings(leases)]
}

function replicaFinding(lease: ReplicaLease, nowMs: number): Finding {
  const { name, address, claims } = replicaOf(lease)
  const what = `kcp apiserver "${name}" at ${address}`
  const { renewTime = '', leaseDurationSeconds = 0 } = lease.spec ?? {}
  const ageMs = nowMs - Date.parse(renewTime)
  const share = `${claims.size} of ${bucketCount} buckets of logical clusters`
  if (ageMs <= leaseDurationSeconds * 1000) return right(`${what} answers for ${share}`)
  return wrong(`${what} last renewed its Lease ${ageText(ageMs)} ago, and holds ${share}`, start)
}

function bucketFindings(leases: readonly ReplicaLease[]): Finding[] {
  const counts = new Array<number>(bucketCount).fill(0)
  for (const lease of leases) for (const bucket of replicaOf(lease).claims) counts[bucket] = (counts[bucket] ?? 0) + 1
  const none = counts.filter((count) => count === 0).length
  const several = counts.filter((count) => count > 1).length
  const todo = 'run this again in 15 seconds; if nothing has changed, see the logs of kcp apiserver'
  return [
    ...(none === 0
      ? []
      : [wrong(`no replica answers for ${none} of ${bucketCount} buckets of logical clusters`, todo)]),
    ...(several === 0 ? [] : [wrong(`${several} buckets of logical clusters are moving between replicas`, todo)]),
  ]
}
