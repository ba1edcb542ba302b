// The next steps for one MemberCluster. Pure: the same observation gives the same steps.
import type { DeepReadonly } from '#client/index.ts'
import {
  memberFinalizer,
  memberIdOf,
  memberState,
  systemNamespace,
  type ExportReport,
  type ExportedApi,
  type GatewayReport,
  type MemberClasses,
  type MemberCluster,
  type MemberClusterStatus,
  type SuspendedDeletions,
  type SyncFailureReport,
  type UnsupportedFields,
} from '#crds/index.ts'
import { agentCertificate, agentRefusal } from './agent-state.ts'
import type { DrainProgress } from './drain-progress.ts'
import { isSame, memberClusterStatus, type Probe } from './status.ts'

export interface Observed {
  readonly object: DeepReadonly<MemberCluster>
  readonly probe: Probe
  /** An older MemberCluster for the same physical cluster. */
  readonly twin: string | undefined
  /** Whether half of the life of the token for the member is over. */
  readonly tokenDue: boolean
  /** `NAMESPACE/NAME` of the workloads with something in the member. */
  readonly placed: readonly string[]
  /** Requests of the pods of these workloads, as a ResourceList. */
  readonly requested: Readonly<Record<string, string>>
  /** The classes that are known by now. */
  readonly classes: readonly MemberClasses[]
  /** The fields that it does not know; absent: not found out yet. */
  readonly unsupportedFields?: readonly UnsupportedFields[]
  /** The syncer's report on the exported APIs; absent: none yet. */
  readonly exports?: ExportReport
  /** The syncer's report on the gateway; absent: none yet. */
  readonly gateway?: GatewayReport
  /** Whether the member has gone back to an earlier revision: then it was restored from a backup. */
  readonly isRestored: boolean
  /** The progress of the drain; absent unless the member drains. */
  readonly drain?: DrainProgress
  /**
   * For how many milliseconds only claims that do not move have been left; absent: other things are left, or nothing, or no
   * Placement lets volumes move.
   */
  readonly onlyClaimsForMs?: number
  /** The logical clusters whose deletions its syncer suspends, because too many workloads are not known upstream. */
  readonly suspended?: readonly SuspendedDeletions[]
  /** The objects of tenants that its syncer cannot sync; absent: there are none. */
  readonly failures?: SyncFailureReport
  /** Whether the agent of a member that is reached by a kubeconfig answers, so that the member may be switched. */
  readonly agentAnswers?: boolean
  readonly nowMs: number
  /** RFC 3339 of nowMs. */
  readonly now: string
}

export type Step =
  | { readonly do: 'addFinalizer' }
  | { readonly do: 'setStatus'; readonly status: MemberClusterStatus }
  /** Run a syncer for the member with this id. */
  | { readonly do: 'sync'; readonly memberId: string }
  | { readonly do: 'stopSyncer' }
  /** Log, and write in an Event, that the member was restored from a backup. */
  | { readonly do: 'reportRestored' }
  /** Request another token of the member and keep it in this Secret. */
  | { readonly do: 'renewToken'; readonly namespace: string; readonly name: string }
  /** Reach the member through its agent from now on. */
  | { readonly do: 'switchToAgent' }
  /** Log that workloads are left in a member that is being deleted. */
  | { readonly do: 'logRemaining' }
  /** Delete everything of this installation in the member. */
  | { readonly do: 'removeInstallation' }
  | { readonly do: 'deleteKubeconfig'; readonly namespace: string; readonly name: string }
  | { readonly do: 'removeFinalizer' }
  /** Close the connection. */
  | { readonly do: 'disconnect' }

export interface Plan {
  readonly steps: readonly Step[]
  readonly requeueAfterSeconds?: number
}

/** Seconds between reconciles to a member that is being deleted and still has workloads. */
const remainingRetrySeconds = 2
/** How long claims without a workload may take to begin to move: twice the time after which they are looked at again. */
const claimsPatienceMs = 60_000
/** Seconds between reconciles to a member whose agent is not connected, which is found out at once. */
const absentAgentSeconds = 3

/** The steps, in order, and when to reconcile the member again. */
export function plan(observed: Observed, { probeSeconds }: { readonly probeSeconds: number }): Plan {
  if (observed.object.metadata.deletionTimestamp !== undefined) return planDeletion(observed)
  const isAbsent = observed.object.spec?.connection?.agent !== undefined && observed.probe.kind !== 'answered'
  const requeueAfterSeconds = isAbsent ? Math.min(probeSeconds, absentAgentSeconds) : probeSeconds
  return { steps: planSync(observed), requeueAfterSeconds }
}

function planSync(observed: Observed): Step[] {
  const { object } = observed
  const isOurs = isAccepted(observed)
  const steps: Step[] = object.metadata.finalizers?.includes(memberFinalizer) ? [] : [{ do: 'addFinalizer' }]
  steps.push(...statusStep(observed))
  const ref = joinedSecret(object)
  if (observed.agentAnswers === true && isOurs) {
    steps.push({ do: 'switchToAgent' })
    if (ref !== undefined) steps.push({ do: 'deleteKubeconfig', ...ref })
    return steps
  }
  if (ref !== undefined && observed.tokenDue && observed.probe.kind === 'answered' && isOurs)
    steps.push({ do: 'renewToken', ...ref })
  // The syncer's caches show a time that the member has lost, so the syncer must list everything again.
  if (observed.isRestored) steps.push({ do: 'stopSyncer' }, { do: 'reportRestored' })
  steps.push(...syncStep(observed))
  if (!isOurs) steps.push({ do: 'stopSyncer' })
  return steps
}

/**
 * A member that is being deleted drains: placement treats it like state Draining, so its workloads move or are Held.
 * When nothing is left, our own objects in the member are deleted, the syncer's identity last, and the finalizer goes.
 * With another deletionPolicy the plan waits for nothing; the scheduler then releases the workloads from the member
 * that is gone.
 */
function planDeletion(observed: Observed): Plan {
  const { object, probe, placed, drain, onlyClaimsForMs = Infinity } = observed
  if (!object.metadata.finalizers?.includes(memberFinalizer)) return { steps: [] }
  const policy = object.spec?.deletionPolicy ?? 'Drain'
  // Volumes that no workload uses leave it, too, where a Placement lets them. Whether they move is found out only then.
  const isLeaving = placed.length > 0 || (drain?.moving ?? 0) > 0 || onlyClaimsForMs < claimsPatienceMs
  if (isLeaving && policy === 'Drain') {
    const steps: Step[] = [
      ...syncStep(observed),
      ...(placed.length > 0 ? [{ do: 'logRemaining' } as const] : []),
      ...statusStep({ ...observed, twin: undefined }),
    ]
    return { steps, requeueAfterSeconds: remainingRetrySeconds }
  }
  const steps: Step[] = [{ do: 'stopSyncer' }]
  if (probe.kind === 'answered' && isAccepted(observed) && policy !== 'Orphan') steps.push({ do: 'removeInstallation' })
  const ref = joinedSecret(object)
  if (ref !== undefined) steps.push({ do: 'deleteKubeconfig', ...ref })
  return { steps: [...steps, { do: 'removeFinalizer' }, { do: 'disconnect' }] }
}

/** The Secret that joining created; undefined for any other one, which belongs to its maker. */
function joinedSecret({ metadata, spec }: Observed['object']): { namespace: string; name: string } | undefined {
  const { namespace, name } = spec?.connection?.kubeconfigSecretRef ?? {}
  if (namespace !== systemNamespace || name !== `member-${metadata.name}`) return undefined
  return { namespace, name }
}

/**
 * False for a cluster that is registered twice, for another one than was registered under this name, and for one whose
 * agent does not count.
 */
function isAccepted({ object, probe, twin, nowMs }: Observed): boolean {
  if (agentRefusal(object, nowMs) !== undefined) return false
  return twin === undefined && isSame({ probe, previous: object.status as MemberCluster['status'] })
}

function syncStep(observed: Observed): Step[] {
  const { probe } = observed
  return probe.kind === 'answered' && isAccepted(observed) ? [{ do: 'sync', memberId: memberIdOf(probe.uid) }] : []
}

/** No step if the status is already right. */
function statusStep({ object, probe, twin, placed, requested, classes, drain, nowMs, now, ...rest }: Observed): Step[] {
  const previous = object.status as MemberCluster['status']
  const state = memberState(object)
  const generation = object.metadata.generation ?? 0
  const drained = drain === undefined ? {} : { drain }
  const refusal = agentRefusal(object, nowMs)
  const certificate = agentCertificate(object, nowMs)
  const input = {
    previous,
    generation,
    state,
    probe,
    twin,
    ...(refusal && { refusal }),
    ...(certificate && { certificate }),
    placed,
    requested: { ...requested },
    classes,
    ...(rest.unsupportedFields && { unsupportedFields: rest.unsupportedFields }),
    ...drained,
    ...(rest.failures && { failures: rest.failures }),
    ...(rest.suspended && { suspended: { name: object.metadata.name, where: rest.suspended } }),
    exported: (object.spec?.exportedAPIs ?? []) as readonly ExportedApi[],
    ...(rest.exports && { exports: rest.exports }),
    ...(object.spec?.serviceNetwork?.type === 'Gateway' && { gateway: rest.gateway ?? {} }),
    nowMs,
    now,
  }
  const status = memberClusterStatus(input)
  return status === previous ? [] : [{ do: 'setStatus', status }]
}
