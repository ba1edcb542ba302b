// Writes into status.agent of MemberClusters what agents say of themselves when they connect, with which certificate they
// do, and why they were refused.
import { isDeepStrictEqual } from 'node:util'
import { isStatusError } from '#apimachinery/status/index.ts'
import { timestamp, type Clock } from '#async/index.ts'
import type { DeepReadonly, Informer, KubeClient } from '#client/index.ts'
import {
  memberClusters,
  type AgentStatus,
  type AgentTunnel,
  type MemberCluster,
  type TunnelRefusal,
} from '#crds/index.ts'
import type { TunnelOffer } from '#network/tunnel/index.ts'
import type { Logger } from '#telemetry/index.ts'
import type { AgentIdentity } from './identity.ts'

interface TunnelReportsOptions {
  readonly members: Pick<Informer<MemberCluster>, 'store'>
  readonly client: Pick<KubeClient, 'patch'>
  readonly clock: Clock
  readonly log: Logger
  /** Milliseconds between two writes of one member. Default 3 s. */
  readonly everyMs?: number
}

type Agent = Pick<AgentIdentity, 'member' | 'uid'>
/** Fields of status.agent and of its tunnel; null removes one. */
interface Patch {
  readonly used?: string
  readonly tunnel?: { readonly [Field in keyof AgentTunnel]: AgentTunnel[Field] | null }
}

interface Pending {
  readonly agent: Agent
  readonly timer: NodeJS.Timeout
  /** Written when the timer ends. */
  next?: Patch
}

const defaultEveryMs = 3000

/** An agent that connects in a loop causes one write in three seconds: the last report wins. */
export class TunnelReports implements Disposable {
  readonly #options: TunnelReportsOptions
  /** By uid of the MemberCluster: those that were written within the last three seconds. */
  readonly #pending = new Map<string, Pending>()
  #isOver = false

  constructor(options: TunnelReportsOptions) {
    this.#options = options
  }

  /** `isNew`: the agent was not connected before. */
  connected(
    agent: Agent & Pick<AgentIdentity, 'fingerprint'>,
    { offer, version, isNew }: { readonly offer: TunnelOffer; readonly version: number; readonly isNew: boolean },
  ): void {
    const { used, tunnel: { since, ...known } = {} } = this.#known(agent) ?? {}
    const { program, capabilities } = offer
    const now: AgentTunnel = {
      protocol: version,
      ...(program !== undefined && { agentVersion: program }),
      capabilities: [...capabilities],
    }
    const { fingerprint } = agent
    if (!isNew && since !== undefined && used === fingerprint && isDeepStrictEqual(known, now)) return
    const at = isNew || since === undefined ? timestamp(this.#options.clock.now()) : since
    this.#report(agent, { used: fingerprint, tunnel: { since: at, agentVersion: null, refused: null, ...now } })
  }

  refused(agent: Agent, refused: TunnelRefusal): void {
    if (!isDeepStrictEqual(this.#known(agent)?.tunnel?.refused, refused)) this.#report(agent, { tunnel: { refused } })
  }

  [Symbol.dispose](): void {
    this.#isOver = true
    for (const { timer } of this.#pending.values()) clearTimeout(timer)
    this.#pending.clear()
  }

  #known({ member, uid }: Agent): DeepReadonly<AgentStatus> | undefined {
    const found = this.#options.members.store.get(member)
    return found?.metadata.uid === uid ? found.status?.agent : undefined
  }

  #report(agent: Agent, patch: Patch): void {
    if (this.#isOver) return
    const pending = this.#pending.get(agent.uid)
    if (pending === undefined) this.#write(agent, patch)
    else pending.next = merged(pending.next, patch)
  }

  #write(agent: Agent, patch: Patch): void {
    const { client, log, everyMs = defaultEveryMs } = this.#options
    const timer = setTimeout(() => this.#goOn(agent.uid), everyMs).unref()
    const pending: Pending = { agent, timer }
    this.#pending.set(agent.uid, pending)
    const { member: name, uid } = agent
    // The uid is a precondition: a MemberCluster of the same name may have taken its place.
    const body = { metadata: { uid }, status: { agent: patch } }
    client
      .patch(memberClusters, { name }, 'merge', body, { subresource: 'status', signal: new AbortController().signal })
      .catch((error: unknown) => {
        log.debug('the state of a tunnel was not written', { member: name, error })
        const isGone = isStatusError(error, 'NotFound') || isStatusError(error, 'Conflict')
        if (!isGone) pending.next = merged(patch, pending.next)
      })
  }

  #goOn(uid: string): void {
    const pending = this.#pending.get(uid)
    this.#pending.delete(uid)
    if (pending?.next !== undefined && !this.#isOver) this.#write(pending.agent, pending.next)
  }
}

function merged(earlier: Patch | undefined, later: Patch | undefined): Patch {
  return { ...earlier, ...later, tunnel: { ...earlier?.tunnel, ...later?.tunnel } }
}
