// The pod of an address in this member, and so its logical cluster.
import { LRUCache } from 'lru-cache'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { parseDownstreamNamespace } from '#crds/index.ts'

export interface PodRecord {
  /** `NAMESPACE/NAME`. */
  readonly pod: string
  readonly namespace: string
  readonly addresses: readonly string[]
}

/** A pod of a logical cluster. */
export interface TenantPod extends PodRecord {
  readonly clusterId: string
}

/** The record of a pod; undefined for a pod that has no address of its own, or has ended. */
export function podRecord(pod: KubeObject): PodRecord | undefined {
  const { namespace = '', name = '' } = pod.metadata
  const { hostNetwork } = (pod['spec'] ?? {}) as { readonly hostNetwork?: boolean }
  const { phase, podIP, podIPs } = (pod['status'] ?? {}) as {
    readonly phase?: string
    readonly podIP?: string
    readonly podIPs?: readonly { readonly ip?: string }[]
  }
  // The addresses of a pod that has ended are given to others while its status still has them.
  if (hostNetwork === true || phase === 'Succeeded' || phase === 'Failed') return undefined
  const addresses = (podIPs ?? [{ ip: podIP }]).flatMap(({ ip }) => (ip === undefined || ip === '' ? [] : [ip]))
  return addresses.length === 0 ? undefined : { pod: `${namespace}/${name}`, namespace, addresses }
}

/** The pod of a record in a namespace with this usual name; undefined if that is no name of a logical cluster. */
export function podIn(record: PodRecord, usual: string): TenantPod | undefined {
  const clusterId = parseDownstreamNamespace(usual)?.clusterId
  return clusterId && { ...record, clusterId }
}

/** An address as the API writes it: a listener on all addresses sees IPv4 clients as IPv6. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address
}

export interface PodAddressesOptions {
  /** Asks the API for the pod with this address. */
  readonly find: (address: string) => Promise<TenantPod | undefined>
  /** The clock of the cache, in milliseconds. */
  readonly now?: () => number
}

/** Number of API responses that are remembered. */
const maxAnswers = 10_000
const answerMs = 30_000

type Known = Pick<TenantPod, 'pod' | 'clusterId'>

export class PodAddresses {
  readonly #options: PodAddressesOptions
  readonly #byAddress = new Map<string, Known>()
  readonly #listeners = new Set<(address: string, clusterId: string) => void>()
  readonly #answers: LRUCache<string, { readonly clusterId: string | undefined }>
  readonly #asking = new Map<string, Promise<string | undefined>>()

  constructor(options: PodAddressesOptions) {
    this.#options = options
    const { now } = options
    this.#answers = new LRUCache({
      max: maxAnswers,
      ttl: answerMs,
      allowStale: true,
      noDeleteOnStaleGet: true,
      ...(now && { perf: { now }, ttlResolution: 0 }),
    })
  }

  set(before: TenantPod | undefined, after: TenantPod | undefined): void {
    for (const address of before?.addresses ?? [])
      if (this.#byAddress.get(address)?.pod === before?.pod) this.#byAddress.delete(address)
    if (after === undefined) return
    for (const address of after.addresses) {
      this.#byAddress.set(address, { pod: after.pod, clusterId: after.clusterId })
      for (const listener of this.#listeners) listener(address, after.clusterId)
    }
  }

  /** Calls the listener with each address that a pod gets. */
  onPod(listener: (address: string, clusterId: string) => void): void {
    this.#listeners.add(listener)
  }

  isOfPod(address: string, pod: string): boolean {
    return pod !== '' && this.#byAddress.get(address)?.pod === pod
  }

  /** The logical cluster of the pod with this address, as far as it is known without asking. */
  known(address: string): string | undefined {
    return this.#byAddress.get(address)?.clusterId
  }

  /**
   * The logical cluster of the pod with this address; undefined if it is no pod of a tenant. Rejects if the API does
   * not respond.
   */
  async clusterOf(address: string): Promise<string | undefined> {
    const known = this.known(address)
    if (known !== undefined) return known
    const answer = this.#answers.get(address)
    if (answer !== undefined && this.#answers.getRemainingTTL(address) > 0) return answer.clusterId
    let asking = this.#asking.get(address)
    if (asking === undefined) {
      asking = this.#ask(address).finally(() => void this.#asking.delete(address))
      this.#asking.set(address, asking)
    }
    return await asking.catch((error: unknown) => {
      // While the API is unavailable, the last response counts, so that ingress controllers and nodes can still
      // connect: without the API, no pod gets an address.
      if (answer !== undefined) return this.known(address) ?? answer.clusterId
      throw error
    })
  }

  async #ask(address: string): Promise<string | undefined> {
    const found = await this.#options.find(address)
    this.#answers.set(address, { clusterId: found?.clusterId })
    // The watch may have reported the pod meanwhile.
    return this.known(address) ?? found?.clusterId
  }
}
