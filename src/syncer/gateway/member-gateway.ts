// Runs the gateway in a member whose pod network is not joined with that of other members: its objects, its identity,
// and the objects that tell it about the other gateways.
import { isDeepStrictEqual } from 'node:util'
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { childSignal, systemClock, type Clock } from '#async/index.ts'
import type { DeepReadonly, KubeClient } from '#client/index.ts'
import {
  gatewayNamespacesName,
  gatewayPeerLabel,
  memberAnnotation,
  memberParts,
  syncerFieldManager,
  systemNamespace,
  type GatewayReport,
} from '#crds/index.ts'
import { createKeyQueue, runController, type ReconcileResult } from '#reconcile/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { findGatewayAddress } from './gateway-address.ts'
import { identityOf, nextIdentity, secretData, type GatewayIdentity } from './gateway-identity.ts'
import { gatewayObjects, namespacesObject, peerObject, type GatewayPeer } from './gateway-objects.ts'

const resources: Readonly<Record<string, GroupVersionResource>> = {
  Deployment: gvrs.deployments,
  Service: gvrs.services,
}
const name = memberParts.gateway
const key = { namespace: systemNamespace, name }
const namespacesKey = { namespace: systemNamespace, name: gatewayNamespacesName }

export interface MemberGatewayOptions {
  readonly memberName: string
  /** A client of the member with the syncer's rights. */
  readonly member: KubeClient
  readonly image: string
  /** spec.serviceNetwork.gatewayAddress; absent: it is found in the member. */
  readonly address?: string
  /** The other members with gateways. */
  readonly peers: () => readonly GatewayPeer[]
  /** The adopted namespaces of the member: the usual name for each name there. */
  readonly namespaces: () => Readonly<Record<string, string>>
  /** Calls the listener when the peers or the namespaces change. Returns the function that ends this. */
  readonly onChange: (listener: () => void) => () => void
  /** Resolves when the peers and the namespaces are known. */
  readonly synced: (signal: AbortSignal) => Promise<void>
  readonly report: (report: GatewayReport) => void
  readonly log: Logger
  readonly signal: AbortSignal
  readonly clock?: Clock
}

/** Seconds between reconciles: when it works, and while it does not. */
const workingSeconds = 60
const waitingSeconds = 2
/** Changes of the peers and the namespaces within this time are one write, milliseconds. */
const gatherMs = 200

/** Starts the gateway and reports its state. Errors of the member are reported, and the reconcile is repeated. */
export function startMemberGateway(options: MemberGatewayOptions): AsyncDisposable {
  const life = childSignal(options.signal)
  const queue = createKeyQueue({ maxMs: 10_000 })
  const end = options.onChange(() => queue.addAfter(name, gatherMs))
  const gateway = new MemberGateway(options)
  queue.add(name)
  const done = runController({
    name: 'gateway',
    queue,
    workers: 1,
    log: options.log,
    signal: life.signal,
    reconcile: (_, signal) => gateway.request(signal),
  })
  return {
    async [Symbol.asyncDispose]() {
      end()
      life.abort(new DOMException('the syncer was closed', 'AbortError'))
      life[Symbol.dispose]()
      await done
      queue[Symbol.dispose]()
    },
  }
}

/** Deletes the gateway of a member that has another service network now. Rejects with StatusError. */
export async function removeMemberGateway(member: KubeClient, signal: AbortSignal): Promise<void> {
  if ((await member.tryGet(gvrs.deployments, key, { signal })) === undefined) return
  for (const gvr of [gvrs.services, gvrs.secrets]) await member.delete(gvr, key, { signal }).catch(tolerate('NotFound'))
  await member.delete(gvrs.configmaps, namespacesKey, { signal }).catch(tolerate('NotFound'))
  for (const { metadata } of await peersIn(member, signal))
    await member
      .delete(gvrs.configmaps, { namespace: systemNamespace, name: metadata.name ?? '' }, { signal })
      .catch(tolerate('NotFound'))
  // The Deployment is deleted last: as long as it exists, a later call deletes what is left.
  await member.delete(gvrs.deployments, key, { signal }).catch(tolerate('NotFound'))
}

class MemberGateway {
  readonly #options: MemberGatewayOptions
  #report: GatewayReport = {}

  constructor(options: MemberGatewayOptions) {
    this.#options = options
  }

  async request(signal: AbortSignal): Promise<ReconcileResult> {
    try {
      this.#tell(await this.#ensure(signal))
    } catch (error) {
      if (signal.aborted || !(error instanceof Error)) throw error
      this.#tell({ ...this.#report, problem: { reason: 'MemberRefuses', message: error.message } })
      throw error
    }
    return { requeueAfterSeconds: this.#report.problem === undefined ? workingSeconds : waitingSeconds }
  }

  #tell(report: GatewayReport): void {
    const isSame = JSON.stringify(report) === JSON.stringify(this.#report)
    this.#report = report
    if (!isSame) this.#options.report(report)
  }

  async #ensure(signal: AbortSignal): Promise<GatewayReport> {
    const { member, memberName, image } = this.#options
    if ((await member.tryGet(gvrs.serviceaccounts, key, { signal })) === undefined) {
      const message = `it has no ServiceAccount "${systemNamespace}/${name}": run "kcp member join ${memberName}" again`
      return { problem: { reason: 'JoinAgain', message } }
    }
    const { current, next } = await this.#ensureIdentity(signal)
    await this.#options.synced(signal)
    await this.#tellPeers(signal)
    await this.#tellNamespaces(signal)
    const applied = new Map<string, KubeObject>()
    for (const object of gatewayObjects(image)) {
      const gvr = resources[object.kind] ?? gvrs.services
      applied.set(object.kind, await this.#apply(gvr, object, signal))
    }
    const [service, deployment] = [applied.get('Service'), applied.get('Deployment')]
    const certificates = [current, ...(next ? [next] : [])].map(({ certificate }) => certificate)
    const before = this.#report.address
    const address =
      this.#options.address ?? (service && (await findGatewayAddress(service, { before, member, signal })))
    const problem = problemOf(address, deployment)
    return { certificates, ...(address !== undefined && { address }), ...(problem && { problem }) }
  }

  async #ensureIdentity(signal: AbortSignal): Promise<GatewayIdentity> {
    const { member, memberName, clock = systemClock } = this.#options
    const secret = await member.tryGet<KubeObject>(gvrs.secrets, key, { signal })
    const known = identityOf((secret?.['data'] ?? {}) as Record<string, string>)
    const identity = await nextIdentity(known, memberName, clock.now())
    if (identity === known) return identity
    const labels = { 'app.kubernetes.io/name': name, 'app.kubernetes.io/part-of': 'kcp' }
    const object = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { ...key, labels },
      type: 'kubernetes.io/tls',
      data: secretData(identity),
    }
    await this.#apply(gvrs.secrets, object, signal)
    return identity
  }

  async #tellPeers(signal: AbortSignal): Promise<void> {
    const { member } = this.#options
    const known = new Map((await peersIn(member, signal)).map((object) => [object.metadata.name ?? '', object]))
    for (const peer of this.#options.peers()) {
      const desired = peerObject(peer)
      const current = known.get(desired.metadata.name ?? '')
      known.delete(desired.metadata.name ?? '')
      if (current === undefined || !isDeepStrictEqual(current['data'], desired['data']))
        await this.#apply(gvrs.configmaps, desired, signal)
    }
    for (const gone of known.keys())
      await member
        .delete(gvrs.configmaps, { namespace: systemNamespace, name: gone }, { signal })
        .catch(tolerate('NotFound'))
  }

  async #tellNamespaces(signal: AbortSignal): Promise<void> {
    const { member, namespaces } = this.#options
    const current = await member.tryGet<KubeObject>(gvrs.configmaps, namespacesKey, { signal })
    const desired = namespacesObject(namespaces())
    if (isDeepStrictEqual(current?.['data'] ?? {}, desired['data'])) return
    await this.#apply(gvrs.configmaps, desired, signal)
  }

  async #apply(gvr: GroupVersionResource, object: KubeObject, signal: AbortSignal): Promise<KubeObject> {
    const ref = { namespace: systemNamespace, name: object.metadata.name ?? '' }
    const options = { fieldManager: syncerFieldManager, force: true, signal }
    return this.#options.member.patch<KubeObject>(gvr, ref, 'apply', object, options)
  }
}

async function peersIn(member: KubeClient, signal: AbortSignal): Promise<readonly KubeObject[]> {
  const options = { namespace: systemNamespace, labelSelector: `${gatewayPeerLabel}=true`, signal }
  const { items } = await member.list<KubeObject>(gvrs.configmaps, options)
  return items.filter(({ metadata }) => metadata.annotations?.[memberAnnotation] !== undefined)
}

/** Why the gateway does not work; undefined if it works. */
function problemOf(
  address: string | undefined,
  deployment: DeepReadonly<KubeObject> | undefined,
): GatewayReport['problem'] {
  const { availableReplicas = 0, conditions = [] } = (deployment?.['status'] ?? {}) as {
    readonly availableReplicas?: number
    readonly conditions?: readonly { readonly status: string; readonly type: string; readonly message?: string }[]
  }
  if (availableReplicas === 0) {
    const failure = conditions.find(({ type, status }) => type === 'ReplicaFailure' && status === 'True')
    const message = failure?.message ?? `Deployment "${systemNamespace}/${name}" of the member has no pod that is ready`
    return { reason: 'NotAvailable', message }
  }
  if (address !== undefined) return undefined
  const message = `Service "${systemNamespace}/${name}" of the member has no address yet: set spec.serviceNetwork.gatewayAddress if other members reach it in another way`
  return { reason: 'NoAddress', message }
}
