// The conditions of an object that are not as they should be.
import type { Condition, DeepReadonly } from '#apimachinery/meta/index.ts'
import {
  conditionsOf,
  sinceOf,
  todoIf,
  type Finding,
  type FindingState,
  type SeenObject,
  type Subject,
} from './finding.ts'
import { remedyOf } from './remedies.ts'

/** Conditions that should be True: of kcp, of Kubernetes, and those that most custom resources have. */
const shouldBeTrue: ReadonlySet<string> = new Set([
  ...['Ready', 'Available', 'Progressing', 'Placed', 'Synced', 'Scheduled', 'Valid', 'Usable', 'Healthy'],
  ...['PodScheduled', 'Initialized', 'ContainersReady', 'AbleToScale', 'ScalingActive', 'Established', 'NamesAccepted'],
  ...['Accepted', 'Reachable', 'CredentialsValid', 'KubeconfigsWritten', 'APIsExported', 'GatewayReady', 'Programmed'],
  ...['ContentDeleted', 'Compatible', 'ParentValid', 'AuthenticationValid', 'AuditDelivered'],
])

/** Conditions that are True while something is wrong. */
const shouldBeFalse: ReadonlySet<string> = new Set([
  ...['ReplicaFailure', 'Failed', 'DeletionsSuspended', 'SyncFailing', 'Conflict', 'Stalled', 'NonStructuralSchema'],
  ...['NamespaceDeletionDiscoveryFailure', 'NamespaceDeletionGroupVersionParsingFailure'],
  ...['NamespaceDeletionContentFailure', 'NamespaceContentRemaining', 'NamespaceFinalizersRemaining'],
  ...['MemoryPressure', 'DiskPressure', 'PIDPressure', 'NetworkUnavailable'],
])

/** Reasons of a condition that becomes well by itself. */
const passing: ReadonlySet<string> = new Set([
  ...['MinimumReplicasUnavailable', 'ContainersNotReady', 'ContainersNotInitialized', 'Pending', 'Moving', 'Deleting'],
  ...['SomeResourcesRemain', 'SomeFinalizersRemain', 'ContentRemains', 'Draining', 'Syncing', 'Probing'],
])

/** One finding for each condition that is not as it should be. */
export function conditionFindings(object: SeenObject, subject: Subject): Finding[] {
  return conditionsOf(object).flatMap((condition) => {
    const state = stateOf(condition)
    if (state === 'well') return []
    const { type, status, reason, message, lastTransitionTime } = condition
    const text = message === '' ? reason : message
    return [
      {
        subject,
        state,
        what: `${type} is ${status}${text === '' ? '' : `: ${text}`}`,
        ...(reason !== '' && { reason }),
        ...sinceOf(lastTransitionTime),
        ...todoIf(remedyOf(reason)),
      },
    ]
  })
}

function stateOf({ type, status, reason }: DeepReadonly<Condition>): FindingState {
  if (shouldBeFalse.has(type)) return status === 'True' ? (passing.has(reason) ? 'waits' : 'wrong') : 'well'
  if (!shouldBeTrue.has(type) || status === 'True' || reason === 'PodCompleted') return 'well'
  return status === 'Unknown' || passing.has(reason) ? 'waits' : 'wrong'
}
