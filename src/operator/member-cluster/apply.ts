// The steps of a plan for a MemberCluster. Each may run twice.
import type { Duplex } from 'node:stream'
import { clusterIdOf, type Condition } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { systemClock } from '#async/index.ts'
import type { DeepReadonly, KubeClient, SharedInformers } from '#client/index.ts'
import { dialMemberPod, requestMemberToken, withMemberToken, type PodPortOfMember } from '#client/member/index.ts'
import {
  acceptsDeletions,
  definitionName,
  type ExportedApiStatus,
  type ClassKindName,
  type GatewayReport,
  installationAnnotation,
  isLostMember,
  type LogicalCluster,
  logicalClusters,
  type MemberClass,
  type MemberCluster,
  memberClusters,
  type MemberExports,
  memberFinalizer,
  type ServiceNetwork,
} from '#crds/index.ts'
import type { MemberApis } from '#operator/exported-apis/member-apis.ts'
import type { OperatorContext } from '#operator/framework/operator-context.ts'
import type { EventText } from '#operator/framework/record-event.ts'
import type { Logger } from '#telemetry/index.ts'
import type { ConnectedMembers, RunningSync } from './connected-members.ts'
import { memberExports } from './member-exports.ts'
import type { Step } from './plan.ts'
import { removeInstallation } from './remove-installation.ts'

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const

/** A member that answers, to be synced with until `signal` aborts. */
export interface MemberToSync {
  readonly name: string
  /** memberIdOf the uid of its kube-system. */
  readonly id: string
  readonly serviceNetwork: ServiceNetwork
  /** spec.serviceNetwork.gatewayAddress. */
  readonly gatewayAddress?: string
  /** Takes the syncer's report on the gateway in the member. */
  readonly gatewayReported: (report: GatewayReport) => void
  /** Whether it is in pull mode: its pods reach us through its agent, too. */
  readonly hasAgent: boolean
  readonly annotationPrefixes: readonly string[]
  /** Its classes of this kind as they are now; undefined: not known. */
  readonly classesOf: (kind: ClassKindName) => readonly DeepReadonly<MemberClass>[] | undefined
  /** Tells whether the member is lost. */
  readonly loss: MemberLoss
  /** Whether an admin accepts that the syncer deletes objects that are not known upstream any more. */
  readonly acceptsDeletions: () => boolean
  /** Called when the failures of its syncer may differ. */
  readonly failuresChanged: () => void
  /** Absent: it exports nothing. */
  readonly exports?: MemberExports
  readonly client: KubeClient
  /** Opens a connection to a port of a pod in it. */
  readonly dialPod: (pod: PodPortOfMember, signal: AbortSignal) => Promise<Duplex>
  readonly log: Logger
  readonly signal: AbortSignal
}

export type StartSyncer = (member: MemberToSync, context: OperatorContext) => Promise<RunningSync>

interface ApplyContext {
  readonly operator: OperatorContext
  readonly connected: ConnectedMembers
  readonly startSyncer: StartSyncer
  /** The life of syncers: that of the controller, longer than the reconcile. */
  readonly controllerSignal: AbortSignal
  readonly logRemaining: () => void
  readonly apis: MemberApis
  /** Takes the syncer's report on the gateway in the member. */
  readonly gatewayReported: (report: GatewayReport) => void
  /** Called when the failures of its syncer may differ. */
  readonly failuresChanged: () => void
  /** Writes an Event about the object. */
  readonly record: (text: EventText) => Promise<void>
}

const restoredEvent: EventText = {
  type: 'Warning',
  reason: 'RestoredFromBackup',
  message: 'its API is at an earlier revision than before: everything in it is read again',
}

/** Applies one step to the object. Rejects with the StatusError of a failed write. */
export async function apply(
  step: Step,
  object: DeepReadonly<MemberCluster>,
  context: ApplyContext,
  signal: AbortSignal,
): Promise<void> {
  const { connected, operator } = context
  const { name, finalizers = [] } = object.metadata
  switch (step.do) {
    case 'addFinalizer':
      return writeFinalizers(object, [...finalizers, memberFinalizer], operator.clusters, signal)
    case 'removeFinalizer':
      return writeFinalizers(
        object,
        finalizers.filter((one) => one !== memberFinalizer),
        operator.clusters,
        signal,
      )
    case 'setStatus': {
      // The API server writes status.agent: the informer's may be that of before.
      const { agent: _, ...status } = step.status
      // A merge patch keeps fields that it does not name.
      const gone = Object.keys(object.status ?? {}).filter((field) => !(field in step.status))
      const patch = { status: { ...status, ...Object.fromEntries(gone.map((field) => [field, null])) } }
      await operator.clusters.patch(memberClusters, { name }, 'merge', patch, { subresource: 'status', signal })
      for (const text of transitions(object.status?.conditions, status.conditions)) await context.record(text)
      for (const text of apiTransitions(object.status?.exportedAPIs, status.exportedAPIs)) await context.record(text)
      return
    }
    case 'reportRestored':
      operator.log.warn('a member was restored from a backup; everything is read again', { member: name })
      return context.record(restoredEvent)
    case 'sync':
      return sync(step.memberId, object, context)
    case 'stopSyncer':
      return connected.stopSyncer(name)
    case 'renewToken':
      return renewToken(step, name, context, signal)
    case 'switchToAgent':
      return switchToAgent(object, context, signal)
    case 'logRemaining':
      context.logRemaining()
      return
    case 'removeInstallation': {
      const member = connected.clientOf(name)
      if (member !== undefined) {
        const installation = object.metadata.annotations?.[installationAnnotation]
        const isPulled = object.spec?.connection?.agent !== undefined
        await removeInstallation(member, { clusterIds: clusterIds(operator), installation, isPulled }, signal)
      }
      return
    }
    case 'deleteKubeconfig':
      return operator.clusters
        .delete(secrets, { namespace: step.namespace, name: step.name }, { signal })
        .catch(tolerate('NotFound'))
    case 'disconnect':
      return connected.disconnect(name)
  }
}

/** Rejects with Conflict if the object has changed since it was read. */
async function writeFinalizers(
  { metadata: { name, resourceVersion } }: DeepReadonly<MemberCluster>,
  finalizers: readonly string[],
  clusters: KubeClient,
  signal: AbortSignal,
): Promise<void> {
  await clusters.patch(memberClusters, { name }, 'merge', { metadata: { resourceVersion, finalizers } }, { signal })
}

/** The next reconcile connects with the new token. A failure is logged and tried again: the present one still holds. */
async function renewToken(
  secret: { readonly namespace: string; readonly name: string },
  member: string,
  { operator, connected }: ApplyContext,
  signal: AbortSignal,
): Promise<void> {
  const [client, kubeconfig] = [connected.clientOf(member), connected.kubeconfigOf(member)]
  if (client === undefined || kubeconfig === undefined) return
  try {
    const text = withMemberToken(kubeconfig, await requestMemberToken(client, signal))
    const data = { kubeconfig: Buffer.from(text).toString('base64') }
    const ref = { namespace: secret.namespace, name: secret.name }
    await operator.clusters.patch(secrets, ref, 'merge', { data }, { signal })
    operator.log.info('renewed the token for a member', { member })
  } catch (error) {
    if (signal.aborted) throw error
    operator.log.warn('the token for a member can not be renewed now', { member, error })
  }
}

/** Rejects with Conflict if the object has changed since it was read. */
async function switchToAgent(
  { metadata: { name, resourceVersion } }: DeepReadonly<MemberCluster>,
  { operator, record }: ApplyContext,
  signal: AbortSignal,
): Promise<void> {
  const patch = { metadata: { resourceVersion }, spec: { connection: { agent: {}, kubeconfigSecretRef: null } } }
  await operator.clusters.patch(memberClusters, { name }, 'merge', patch, { signal })
  operator.log.info('a member is reached through its agent from now on', { member: name })
  const message = 'its agent has connected: the kubeconfig is not used any more'
  await record({ type: 'Normal', reason: 'SwitchedToAgent', message })
}

async function sync(
  id: string,
  object: DeepReadonly<MemberCluster>,
  { operator, connected, startSyncer, controllerSignal, apis: shared, gatewayReported, failuresChanged }: ApplyContext,
): Promise<void> {
  const { name } = object.metadata
  const { type: serviceNetwork = 'None', gatewayAddress } = object.spec?.serviceNetwork ?? {}
  const annotationPrefixes = object.spec?.annotationPrefixes ?? []
  const hasAgent = object.spec?.connection?.agent !== undefined
  // Until the classes are read, those in the status hold: templates must not change because of a restart.
  const classesOf = (wanted: ClassKindName): readonly DeepReadonly<MemberClass>[] | undefined => {
    const found = [...connected.classesOf(name), ...(object.status?.classes ?? [])]
    return found.find(({ kind, truncated = false }) => kind === wanted && !truncated)?.items
  }
  const known = operator.informers.of<MemberCluster>(memberClusters)
  const accepts = (): boolean => acceptsDeletions(known.store.get(name) ?? object, systemClock.now())
  const exports = memberExports(object, { apis: shared, context: operator, signal: controllerSignal })
  const { apis, former } = exports ?? {}
  await connected.sync(
    name,
    JSON.stringify([id, serviceNetwork, gatewayAddress, hasAgent, annotationPrefixes, apis, former]),
    async ({ client, transport }) => {
      const { log } = operator
      log.info('starting to sync with a member', { member: name, id, serviceNetwork })
      return startSyncer(
        {
          name,
          id,
          serviceNetwork,
          ...(gatewayAddress !== undefined && { gatewayAddress }),
          gatewayReported,
          failuresChanged,
          hasAgent,
          annotationPrefixes,
          classesOf,
          loss: memberLoss(name, operator.informers),
          acceptsDeletions: accepts,
          ...(exports && { exports }),
          client,
          dialPod: (pod, signal) => dialMemberPod(transport, pod, signal),
          log,
          signal: controllerSignal,
        },
        operator,
      )
    },
  )
}

function clusterIds({ informers }: OperatorContext): ReadonlySet<string> {
  const clusters = informers.of<LogicalCluster>(logicalClusters).store.list()
  return new Set(clusters.map(({ metadata }) => clusterIdOf(metadata.uid ?? '')))
}

/** The types of conditions that are True while something is wrong. */
const problems: ReadonlySet<string> = new Set(['DeletionsSuspended', 'SyncFailing'])

/**
 * Events after the conditions of a member have changed: each with another status or reason, its message included.
 * Conditions that only follow from another (Ready, while Reachable or Accepted has the reason) are not repeated.
 */
export function transitions(
  before: readonly Readonly<Condition>[] = [],
  after: readonly Readonly<Condition>[] = [],
): EventText[] {
  const changed = after.filter(({ type, status, reason }) => {
    const known = before.find((condition) => condition.type === type)
    return known?.status !== status || known.reason !== reason
  })
  const told = new Set<string>()
  return changed.flatMap(({ type, status, reason, message }) => {
    if (told.has(message)) return []
    told.add(message)
    return [
      status === 'True'
        ? { type: problems.has(type) ? 'Warning' : 'Normal', reason: type, message }
        : { type: eventType(reason), reason, message },
    ]
  })
}

/** Events after what is known of exported APIs has changed: each that cannot be used, or has lost other fields. */
export function apiTransitions(
  before: readonly DeepReadonly<ExportedApiStatus>[] = [],
  after: readonly DeepReadonly<ExportedApiStatus>[] = [],
): EventText[] {
  return after.flatMap((api): EventText[] => {
    const name = definitionName(api)
    const known = before.find((one) => definitionName(one) === name)
    const found: EventText[] = []
    const [was, is] = [known, api].map((one) => one?.conditions?.find(({ type }) => type === 'Compatible'))
    if (is?.status === 'False' && (was?.status !== 'False' || was.message !== is.message))
      found.push({ type: 'Warning', reason: 'APIIncompatible', message: `${name}: ${is.message}` })
    const [had, has] = [known, api].map((one) => JSON.stringify(one?.droppedFields ?? []))
    if (had === has || api.droppedFields === undefined) return found
    const fields = api.droppedFields.map(({ version, path, members }) => `${version} ${path} (${members.join(', ')})`)
    const message = `${name}: logical clusters do not have fields that some members lack: ${fields.join('; ')}`
    return [...found, { type: 'Normal', reason: 'FieldsDropped', message: message.slice(0, 1000) }]
  })
}

/** Reasons of which nobody need be warned: an admin has closed the member, or it is just joining. */
const harmless: ReadonlySet<string> = new Set(['Cordoned', 'Draining', 'WaitingForAgent', 'WaitingForApproval'])

function eventType(reason: string): EventText['type'] {
  return harmless.has(reason) ? 'Normal' : 'Warning'
}

interface MemberLoss {
  isLost(): boolean
  /** Calls the listener when it answers again after it was lost. Returns the function that ends it. */
  onReturn(listener: () => void): () => void
}

/** The loss of the member with this name. */
export function memberLoss(name: string, informers: SharedInformers): MemberLoss {
  const informer = informers.of<MemberCluster>(memberClusters)
  return {
    isLost: () => isLostMember(informer.store.get(name)),
    onReturn: (listener) =>
      informer.onChange(({ key, before, after }) => {
        if (key === name && isLostMember(before) && !isLostMember(after)) listener()
      }),
  }
}
