// What is left to do for one MemberCluster. Pure: the same observation gives the same steps.
import type { DeepReadonly } from '../../client/index.ts'
import {
  memberFinalizer,
  memberIdOf,
  systemNamespace,
  type MemberCluster,
  type MemberClusterStatus,
} from '../../crds/index.ts'
import { memberClusterStatus, type Probe } from './status.ts'

export interface Observed {
  readonly object: DeepReadonly<MemberCluster>
  readonly probe: Probe
  /** An older MemberCluster for the same physical cluster. */
  readonly twin: string | undefined
  /** Half of the life of the token for the member is over. */
  readonly tokenDue: boolean
  /** `NAMESPACE/NAME` of the workloads with something in the member. */
  readonly placed: readonly string[]
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
  /** Request another token of the member and keep it in this Secret. */
  | { readonly do: 'renewToken'; readonly namespace: string; readonly name: string }
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

/** Seconds between visits to a member that is being deleted and still has workloads. */
const remainingRetrySeconds = 2

/** The steps, in order, and when to visit the member again. */
export function plan(observed: Observed, { probeSeconds }: { readonly probeSeconds: number }): Plan {
  return observed.object.metadata.deletionTimestamp === undefined
    ? { steps: planSync(observed), requeueAfterSeconds: probeSeconds }
    : planDeletion(observed)
}

function planSync(observed: Observed): Step[] {
  const { object, twin } = observed
  const steps: Step[] = object.metadata.finalizers?.includes(memberFinalizer) ? [] : [{ do: 'addFinalizer' }]
  steps.push(...statusStep(observed))
  const ref = joinedSecret(object)
  if (ref !== undefined && observed.tokenDue && observed.probe.kind === 'answered' && twin === undefined)
    steps.push({ do: 'renewToken', ...ref })
  steps.push(...syncStep(observed))
  if (twin !== undefined) steps.push({ do: 'stopSyncer' })
  return steps
}

/**
 * A member that is being deleted drains: placement treats it like state Draining, so its workloads move or are Held. When
 * nothing is left, our own objects in the member are deleted, the syncer's identity last, and the finalizer goes.
 */
function planDeletion(observed: Observed): Plan {
  const { object, probe, twin, placed } = observed
  if (!object.metadata.finalizers?.includes(memberFinalizer)) return { steps: [] }
  if (placed.length > 0) {
    const steps: Step[] = [
      ...syncStep(observed),
      { do: 'logRemaining' },
      ...statusStep({ ...observed, twin: undefined }),
    ]
    return { steps, requeueAfterSeconds: remainingRetrySeconds }
  }
  const steps: Step[] = [{ do: 'stopSyncer' }]
  if (probe.kind === 'answered' && twin === undefined) steps.push({ do: 'removeInstallation' })
  const ref = joinedSecret(object)
  if (ref !== undefined) steps.push({ do: 'deleteKubeconfig', ...ref })
  return { steps: [...steps, { do: 'removeFinalizer' }, { do: 'disconnect' }] }
}

/** The Secret that joining created; undefined for any other one, which belongs to whoever made it. */
function joinedSecret({ metadata, spec }: Observed['object']): { namespace: string; name: string } | undefined {
  const { namespace, name } = spec?.connection?.kubeconfigSecretRef ?? {}
  if (namespace !== systemNamespace || name !== `member-${metadata.name}`) return undefined
  return { namespace, name }
}

function syncStep({ probe, twin }: Observed): Step[] {
  return probe.kind === 'answered' && twin === undefined ? [{ do: 'sync', memberId: memberIdOf(probe.uid) }] : []
}

/** No step if the status is already right. */
function statusStep({ object, probe, twin, placed, nowMs, now }: Observed): Step[] {
  const previous = object.status as MemberCluster['status']
  const isDeleting = object.metadata.deletionTimestamp !== undefined
  const state = isDeleting ? 'Draining' : (object.spec?.state ?? 'Active')
  const generation = object.metadata.generation ?? 0
  const status = memberClusterStatus({ previous, generation, state, probe, twin, placed, nowMs, now })
  return status === previous ? [] : [{ do: 'setStatus', status }]
}
