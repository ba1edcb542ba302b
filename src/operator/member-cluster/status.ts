// The status of a MemberCluster. Pure.
import { isDeepStrictEqual } from 'node:util'
import type { Condition } from '#apimachinery/meta/index.ts'
import {
  definitionName,
  lostAfterMs,
  lostReason,
  maxExportedApis,
  setCondition,
  suspendedDeletionsText,
  syncFailureText,
  type ExportReport,
  type ExportedApi,
  type ExportedApiStatus,
  type GatewayReport,
  type MemberClasses,
  type MemberClusterStatus,
  type SuspendedDeletions,
  type SyncFailureReport,
  type UnsupportedFields,
} from '#crds/index.ts'
import type { AgentRefusal } from './agent-state.ts'
import type { DrainProgress } from './drain-progress.ts'

/** Amounts by resource, as text. */
export type ResourceList = Record<string, string>

/** The result of asking a member. */
export type Probe =
  | {
      readonly kind: 'answered'
      readonly uid: string
      readonly version: string
      /** Whether it serves metrics.k8s.io/v1beta1; absent: it did not say. */
      readonly metricsAPI?: boolean
      readonly nodes: { readonly ready: number; readonly total: number }
      /** Sums over the nodes that are Ready and take pods. */
      readonly capacity: ResourceList
      readonly allocatable: ResourceList
      /** The resourceVersion of the list of nodes. */
      readonly revision: string
    }
  /** The member answered 401 or 403. */
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'unreachable'; readonly message: string }
  /** There is no usable kubeconfig. */
  | { readonly kind: 'unusable'; readonly message: string }

export interface StatusInput {
  readonly previous: MemberClusterStatus | undefined
  readonly generation: number
  readonly state: 'Active' | 'Cordoned' | 'Draining'
  readonly probe: Probe
  /** The name of an older MemberCluster for the same physical cluster. */
  readonly twin: string | undefined
  /** Why the agent of a member in pull mode does not count; absent: it does, or there is none. */
  readonly refusal?: AgentRefusal
  /** How long the certificate of its agent is valid; absent: it has none. */
  readonly certificate?: AgentRefusal & { readonly status: 'True' | 'False' }
  /** `NAMESPACE/NAME` of the workloads with something in the member. */
  readonly placed: readonly string[]
  /** How far the drain has come, while the state is Draining. */
  readonly drain?: DrainProgress
  /** The name of the member, and the logical clusters whose deletions its syncer suspends. */
  readonly suspended?: { readonly name: string; readonly where: readonly SuspendedDeletions[] }
  /** The objects of tenants that its syncer cannot sync; absent: there are none. */
  readonly failures?: SyncFailureReport
  /** Requests of the pods of these workloads. */
  readonly requested: ResourceList
  /** The classes that are known by now. */
  readonly classes: readonly MemberClasses[]
  /** The fields that it does not know; absent: not found out yet. */
  readonly unsupportedFields?: readonly UnsupportedFields[]
  /** With service network Gateway: what is known of its gateway; empty: nothing yet. */
  readonly gateway?: GatewayReport
  /** spec.exportedAPIs. */
  readonly exported?: readonly Readonly<ExportedApi>[]
  /** The syncer's report on them; absent: none yet. */
  readonly exports?: ExportReport
  readonly nowMs: number
  /** RFC 3339 of nowMs. */
  readonly now: string
}

/** A new heartbeat alone causes a write after this time only. */
export const heartbeatMs = 30_000

const passing: ReadonlySet<string> = new Set([
  'Drained',
  'DeletionsSuspended',
  'SyncFailing',
  'APIsExported',
  'GatewayReady',
  'CertificateValid',
])

/** The next status; `previous` itself if nothing has changed. */
export function memberClusterStatus(input: StatusInput): MemberClusterStatus {
  const { previous = {}, generation, probe, placed, requested, nowMs, now } = input
  const exporting = exportedNow(input)
  const updates = [
    ...conditionsOf(input),
    ...drainedCondition(input),
    ...suspendedCondition(input),
    ...failingCondition(input),
    ...exportedCondition(input),
    ...gatewayCondition(input),
    ...(input.certificate ? [{ type: 'CertificateValid', ...input.certificate }] : []),
  ]
  const told = new Set(updates.map(({ type }) => type))
  // Conditions of the types in `passing` exist only while they have something to tell.
  let conditions: readonly Readonly<Condition>[] = (previous.conditions ?? []).filter(
    ({ type }) => told.has(type) || !passing.has(type) || (type === 'GatewayReady' && input.gateway !== undefined),
  )
  for (const update of updates)
    conditions = setCondition(conditions, { ...update, observedGeneration: generation }, now)
  const answered = probe.kind === 'answered'
  const beat = answered && nowMs - Date.parse(previous.lastHeartbeatTime ?? '1970-01-01T00:00:00Z') >= heartbeatMs
  const {
    moving: _moving,
    held: _held,
    remaining: _remaining,
    exportedAPIs: _exported,
    gateway: _gateway,
    ...kept
  } = previous
  const status: MemberClusterStatus = {
    ...kept,
    observedGeneration: generation,
    placed: placed.length,
    conditions: [...conditions],
    requested,
    ...(exporting.length > 0 && { exportedAPIs: exporting }),
    ...gatewayNow(input),
    ...(input.drain && { ...input.drain, remaining: [...input.drain.remaining] }),
    ...(answered && isSame(input) && { ...reported(probe), ...classesOf(input), ...fieldsOf(input) }),
    ...(beat && { lastHeartbeatTime: now }),
  }
  return isDeepStrictEqual(status, previous) ? previous : status
}

function reported({
  uid,
  version,
  metricsAPI,
  nodes,
  capacity,
  allocatable,
}: Extract<Probe, { kind: 'answered' }>): MemberClusterStatus {
  const metrics = metricsAPI === undefined ? {} : { metricsAPI }
  return { id: uid, version, ...metrics, nodes, capacity, allocatable }
}

function fieldsOf({ unsupportedFields }: StatusInput): Pick<MemberClusterStatus, 'unsupportedFields'> {
  return unsupportedFields === undefined ? {} : { unsupportedFields: [...unsupportedFields] }
}

/** Kinds that are not known yet stay as they were: after a start they are read again. */
function classesOf({ previous, classes }: StatusInput): Pick<MemberClusterStatus, 'classes'> {
  const known = new Set(classes.map(({ kind }) => kind))
  const kept = (previous?.classes ?? []).filter(({ kind }) => !known.has(kind))
  const all = [...kept, ...classes].sort((a, b) => (a.kind < b.kind ? -1 : 1))
  return all.length === 0 ? {} : { classes: all }
}

/** False if another cluster answers than the one that was registered. */
export function isSame({ probe, previous }: Pick<StatusInput, 'probe' | 'previous'>): boolean {
  return probe.kind !== 'answered' || previous?.id === undefined || previous.id === probe.uid
}

interface ConditionUpdate {
  readonly type: string
  readonly status: Condition['status']
  readonly reason: string
  readonly message: string
}

/** Whether the cluster that answers is the one that was registered, and only once. */
function acceptance(input: StatusInput): ConditionUpdate {
  const { twin, probe, previous, refusal } = input
  const refuse = (reason: string, message: string): ConditionUpdate => ({
    type: 'Accepted',
    status: 'False',
    reason,
    message,
  })
  if (refusal !== undefined) return refuse(refusal.reason, refusal.message)
  if (twin !== undefined) return refuse('RegisteredTwice', `the same cluster is registered as "${twin}"`)
  if (!isSame(input) && probe.kind === 'answered') {
    const message = `another cluster answers: the uid of its kube-system is ${probe.uid}, that of the registered one ${previous?.id ?? ''}; register it under another name`
    return refuse('AnotherCluster', message)
  }
  return { type: 'Accepted', status: 'True', reason: 'Accepted', message: 'it is registered once' }
}

function conditionsOf(input: StatusInput): ConditionUpdate[] {
  const condition = (type: string, status: Condition['status'], reason: string, message: string): ConditionUpdate => ({
    type,
    status,
    reason,
    message,
  })
  const { probe, state, placed } = input
  const accepted = acceptance(input)
  const isAccepted = accepted.status === 'True'
  if (probe.kind === 'answered') {
    const ready = isAccepted
      ? condition('Ready', 'True', 'Answers', 'its API answers')
      : condition('Ready', 'False', 'NotAccepted', accepted.message)
    const open = isAccepted && state === 'Active'
    return [
      accepted,
      condition('Reachable', 'True', 'Answers', 'its API answers'),
      condition('CredentialsValid', 'True', 'Accepted', 'the member accepts our credentials'),
      ready,
      open
        ? condition('Schedulable', 'True', 'Active', 'it takes workloads')
        : condition(
            'Schedulable',
            'False',
            isAccepted ? state : 'NotAccepted',
            isAccepted ? closedMessage(state, placed) : accepted.message,
          ),
    ]
  }
  // A member that has never answered waits for its agent, and nothing is wrong with it.
  if (input.refusal !== undefined && input.previous?.id === undefined) {
    const { reason, message } = input.refusal
    return [
      accepted,
      condition('Reachable', 'Unknown', reason, message),
      condition('CredentialsValid', 'Unknown', reason, message),
      condition('Ready', 'False', reason, message),
      condition('Schedulable', 'False', 'NotAccepted', message),
    ]
  }
  const { message } = probe
  if (probe.kind === 'refused') {
    return [
      accepted,
      condition('Reachable', 'True', 'Answers', 'its API answers'),
      condition('CredentialsValid', 'False', 'Refused', message),
      condition('Ready', 'Unknown', 'CredentialsInvalid', message),
      condition('Schedulable', 'False', 'NotReady', message),
    ]
  }
  const reason = probe.kind === 'unusable' ? 'ConnectionUnusable' : 'Unreachable'
  return [
    accepted,
    condition('Reachable', 'False', reason, message),
    condition('CredentialsValid', 'Unknown', reason, message),
    isLost(input)
      ? condition('Ready', 'Unknown', lostReason, `it has not answered for ${lostAfterMs / 1000} s: ${message}`)
      : condition('Ready', 'Unknown', reason, message),
    condition('Schedulable', 'False', 'NotReady', message),
  ]
}

/** Whether the member has not answered for lostAfterMs. */
function isLost({ probe, previous, nowMs }: StatusInput): boolean {
  const reachable = previous?.conditions?.find(({ type }) => type === 'Reachable')
  if (probe.kind !== 'unreachable' || reachable?.status !== 'False') return false
  return nowMs - Date.parse(reachable.lastTransitionTime) >= lostAfterMs
}

function drainedCondition({ state, placed, drain }: StatusInput): ConditionUpdate[] {
  if (state !== 'Draining') return []
  const { moving = 0, held = 0, claims = 0 } = drain ?? {}
  if (placed.length === 0 && claims === 0)
    return [
      { type: 'Drained', status: 'True', reason: 'Empty', message: 'nothing is left there: it may be switched off' },
    ]
  const reason = held > 0 ? 'Held' : 'Moving'
  const volumes = claims === 0 ? '' : ` and ${claims} volumes that no workload uses`
  const message = `${placed.length} workloads${volumes} are left: ${moving} are moving, ${held} can go nowhere (status.remaining)`
  return [{ type: 'Drained', status: 'False', reason, message }]
}

function suspendedCondition({ suspended }: StatusInput): ConditionUpdate[] {
  if (suspended === undefined || suspended.where.length === 0) return []
  const message = suspendedDeletionsText(suspended.name, suspended.where)
  return [{ type: 'DeletionsSuspended', status: 'True', reason: 'TooManyAtOnce', message }]
}

function failingCondition({ failures }: StatusInput): ConditionUpdate[] {
  if (failures === undefined) return []
  return [{ type: 'SyncFailing', status: 'True', reason: 'ObjectsFail', message: syncFailureText(failures) }]
}

/** The exported APIs, and earlier ones that are not withdrawn yet. */
function exportedNow(input: StatusInput): ExportedApiStatus[] {
  const { previous, exported = [], exports } = input
  const names = new Set(exported.map(definitionName))
  const leaving = (previous?.exportedAPIs ?? []).filter((api) => {
    const name = definitionName(api)
    return !names.has(name) && exports?.withdrawn.includes(name) !== true
  })
  return [...exported.map((api) => exportedApiNow(api, input)), ...leaving].slice(0, maxExportedApis)
}

/** One exported API; until something is known of it, as it was. */
function exportedApiNow({ group, resource }: Readonly<ExportedApi>, input: StatusInput): ExportedApiStatus {
  const { previous, exports, now, generation } = input
  const isIt = (api: Pick<ExportedApi, 'group' | 'resource'>): boolean =>
    api.group === group && api.resource === resource
  const before = previous?.exportedAPIs?.find(isIt) ?? { group, resource }
  const report = exports?.apis.find(isIt)
  if (report === undefined) return before
  const { logicalClusters, droppedFields, incompatible } = report
  let conditions: readonly Readonly<Condition>[] = before.conditions ?? []
  for (const update of apiConditions(logicalClusters, incompatible))
    conditions = setCondition(conditions, { ...update, observedGeneration: generation }, now)
  return {
    group,
    resource,
    logicalClusters,
    ...(droppedFields.length > 0 && {
      droppedFields: droppedFields.map((field) => ({ ...field, members: [...field.members] })),
    }),
    conditions: [...conditions],
  }
}

/** Compatible: all logical clusters that may use the member can use it for the API. Available implies it. */
function apiConditions(logicalClusters: number, incompatible: string | undefined): ConditionUpdate[] {
  if (incompatible !== undefined)
    return [
      { type: 'Compatible', status: 'False', reason: 'DefinitionsDiffer', message: incompatible },
      { type: 'Available', status: 'False', reason: 'Incompatible', message: incompatible },
    ]
  const compatible = 'its definition has all that logical clusters have of the API'
  return [
    { type: 'Compatible', status: 'True', reason: 'Agreed', message: compatible },
    logicalClusters > 0
      ? { type: 'Available', status: 'True', reason: 'Offered', message: `${logicalClusters} logical clusters have it` }
      : { type: 'Available', status: 'False', reason: 'NotOffered', message: 'no logical cluster has it' },
  ]
}

function exportedCondition(input: StatusInput): ConditionUpdate[] {
  if (exportedNow(input).length === 0) return []
  const type = 'APIsExported'
  const { exports, exported = [] } = input
  if (exports === undefined)
    return [
      {
        type,
        status: 'Unknown',
        reason: 'Pending',
        message: 'some logical clusters do not have all exported APIs yet',
      },
    ]
  const [first, ...more] = exports.problems
  if (first !== undefined) {
    const message = [first, ...more].slice(0, maxNamed).join('; ')
    return [{ type, status: 'False', reason: 'Incomplete', message: message.slice(0, 2048) }]
  }
  if (exported.length === 0)
    return [{ type, status: 'False', reason: 'Withdrawing', message: 'copies of withdrawn APIs are being deleted' }]
  return [
    { type, status: 'True', reason: 'Exported', message: `${exported.length} APIs are offered to logical clusters` },
  ]
}

/** The gateway in the status: after a start, the previous one until the syncer has reported. */
function gatewayNow({ previous, gateway }: StatusInput): Pick<MemberClusterStatus, 'gateway'> {
  if (gateway === undefined) return {}
  const { address = previous?.gateway?.address, certificates = previous?.gateway?.certificates } = gateway
  if (address === undefined && certificates === undefined) return {}
  return {
    gateway: { ...(address !== undefined && { address }), ...(certificates && { certificates: [...certificates] }) },
  }
}

function gatewayCondition({ gateway, previous }: StatusInput): ConditionUpdate[] {
  if (gateway === undefined) return []
  const type = 'GatewayReady'
  if (gateway.problem !== undefined) return [{ type, status: 'False', ...gateway.problem }]
  if (gateway.certificates !== undefined)
    return [
      {
        type,
        status: 'True',
        reason: 'Available',
        message: `other members reach it at ${gateway.address ?? 'no address'}`,
      },
    ]
  if (previous?.conditions?.some((one) => one.type === type) === true) return []
  return [
    {
      type,
      status: 'Unknown',
      reason: 'Pending',
      message: 'the syncer of this member has not started the gateway yet',
    },
  ]
}

const maxNamed = 5

/** Why the member takes no workloads; while it drains, also what is still there. */
function closedMessage(state: StatusInput['state'], placed: readonly string[]): string {
  if (state !== 'Draining') return `its state is ${state}`
  if (placed.length === 0) return 'its state is Draining: no workloads are left there'
  const named = placed.toSorted().slice(0, maxNamed).join(', ')
  const more = placed.length > maxNamed ? ` and ${placed.length - maxNamed} more` : ''
  return `its state is Draining: workloads are left there: ${named}${more}`
}
