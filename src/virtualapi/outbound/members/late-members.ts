// Access to the members for the rest of the server. They are created last, because they use the server's loopback,
// which uses the rest of the server.
import type { Clock } from '#async/index.ts'
import type { MemberTokens } from '#virtualapi/auth/authn/member-tokens.ts'
import type { FindPlacedAccount } from '#virtualapi/auth/authn/placed-accounts.ts'
import type { ConnectToPod } from '#virtualapi/outbound/calls/resolve-service.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { dialPod } from './dial-pod.ts'
import type { Members } from './index.ts'
import type { MemberAccess } from './member-access.ts'
import type { MemberMetrics } from './member-metrics.ts'
import { noPodConnector, type PodConnector } from './pod-connector.ts'
import type { PodWriter } from './pod-writer.ts'

/** Has no members until `set` is called, and never if the server has none. */
export class LateMembers implements AsyncDisposable {
  #members: Members | undefined

  /** Called once, before the server serves requests. */
  set(members: Members): void {
    this.#members = members
  }

  get fleet(): Members['fleet'] | undefined {
    return this.#members?.fleet
  }

  get registrations(): Members['registrations'] | undefined {
    return this.#members?.registrations
  }

  get podConnector(): PodConnector | undefined {
    return this.#members?.podConnector
  }

  get podWriter(): PodWriter | undefined {
    return this.#members?.podWriter
  }

  get metrics(): MemberMetrics | undefined {
    return this.#members?.metrics
  }

  get access(): MemberAccess | undefined {
    return this.#members?.access
  }

  get isEmpty(): boolean {
    return (this.#members?.fleet.all().length ?? 0) === 0
  }

  /** True if a member may run pods of the logical cluster. */
  mayRunPods({ labels }: LogicalCluster): boolean {
    return this.#members?.mayRunPods(labels) ?? true
  }

  /** Verifies tokens of pods in members. */
  tokens(findAccount: FindPlacedAccount, clock: Clock): MemberTokens {
    return {
      findPlacedAccount: async ({ memberId, clusterId, ...account }, signal) => {
        const member = await this.#members?.nameOf(memberId, signal)
        return member === undefined
          ? undefined
          : await findAccount({ ...account, cluster: clusterId, member }, clock.now(), signal)
      },
      verify: async (memberId, token, signal) => this.#members?.memberTokens.verify(memberId, token, signal),
    }
  }

  /** Connects to ports of pods in members. */
  connectToPod(directory: Pick<ClusterDirectory, 'byId'>): ConnectToPod {
    return async (id, to, signal) => {
      const [cluster, connector] = [directory.byId(id), this.podConnector]
      if (cluster === undefined || connector === undefined) throw noPodConnector()
      return await dialPod(connector, { cluster, ...to }, signal)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#members?.[Symbol.asyncDispose]()
  }
}
