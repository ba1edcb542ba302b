// The kubelets of all nodes: runs the pods that are bound to them, writes their status, and ends them gracefully.
import { jsonEqual } from '#apimachinery/json/index.ts'
import { keyOf, type Pod, type PodStatus } from '#simulation/cluster/objects.ts'
import { hasEnded } from '#simulation/cluster/pod-facts.ts'
import type { Simulation } from '#simulation/cluster/simulation.ts'
import type { Network } from '#simulation/runtime/network.ts'
import { nodeAddress, nodeName, type NodeOptions } from './nodes.ts'
import { PodRun } from './pod-run.ts'
import type { Timing } from './programs.ts'

export interface KubeletOptions {
  readonly member: string
  readonly nodes: NodeOptions
  readonly network: Network
  readonly timing: Timing
}

/** The addresses of a node's pods, the last byte. */
const [firstHost, lastHost] = [2, 254]

export class Kubelet {
  readonly #simulation: Simulation
  readonly #options: KubeletOptions
  /** By `namespace/name`. */
  readonly #runs = new Map<string, PodRun>()
  readonly #addresses = new Set<string>()
  readonly #nextHost = new Map<number, number>()
  /** By node: the images that it has. */
  readonly #images = new Map<string, Set<string>>()

  constructor(simulation: Simulation, options: KubeletOptions) {
    this.#simulation = simulation
    this.#options = options
  }

  start(): void {
    const { pods } = this.#simulation.cache
    this.#simulation.loop({
      name: 'kubelet',
      workers: 16,
      follow(enqueue) {
        pods.onChange((after, before) => {
          const pod = after ?? before
          if (pod?.spec.nodeName !== undefined) enqueue(keyOf(pod))
        })
      },
      reconcile: (key) => this.#reconcile(key),
    })
  }

  /** Ends all pods at once, as when the power goes. Their status stays as it is. */
  halt(): void {
    for (const run of this.#runs.values()) run.stop(Date.now())
    this.#runs.clear()
    this.#addresses.clear()
  }

  /** The run of a pod with this uid; undefined if no kubelet runs it. */
  run(pod: Pod): PodRun | undefined {
    const run = this.#runs.get(keyOf(pod))
    return run?.uid === pod.metadata.uid ? run : undefined
  }

  runs(): Iterable<PodRun> {
    return this.#runs.values()
  }

  async #reconcile(key: string): Promise<{ requeueAfterSeconds: number } | undefined> {
    const pod = this.#simulation.cache.pods.get(key)
    const known = this.#runs.get(key)
    if (known !== undefined && known.uid !== pod?.metadata.uid) this.#forget(key, known)
    if (pod === undefined || !this.#isOurs(pod)) return undefined
    const isDeleted = pod.metadata.deletionTimestamp !== undefined
    if (hasEnded(pod.status?.phase)) {
      if (isDeleted) await this.#remove(key, pod)
      return undefined
    }
    const run = this.#runs.get(key) ?? this.#begin(key, pod)
    if (run === undefined) return { requeueAfterSeconds: 1 }
    run.pod = pod
    const now = Date.now()
    if (isDeleted) run.terminate(now)
    const next = run.advance(now)
    if (run.hasEnded) this.#options.network.remove(run.address, run)
    await this.#writeStatus(pod, run.status(now))
    if (isDeleted && run.hasEnded) {
      await this.#remove(key, pod)
      return undefined
    }
    return next === undefined ? undefined : { requeueAfterSeconds: Math.max(5, next - Date.now()) / 1000 }
  }

  #isOurs({ spec }: Pod): boolean {
    return this.#indexOf(spec.nodeName) >= 0
  }

  #indexOf(node: string | undefined): number {
    const { member, nodes } = this.#options
    return Array.from({ length: nodes.count }, (_, index) => nodeName(member, index)).indexOf(node ?? '')
  }

  #begin(key: string, pod: Pod): PodRun | undefined {
    const { member, nodes, network, timing } = this.#options
    const node = pod.spec.nodeName ?? ''
    const index = this.#indexOf(node)
    const hostAddress = nodeAddress(nodes, index)
    const address = pod.spec.hostNetwork === true ? hostAddress : this.#freeAddress(index, pod.status?.podIP)
    if (address === undefined) return undefined
    const images = this.#images.get(node) ?? new Set<string>()
    this.#images.set(node, images)
    const run = new PodRun(pod, {
      simulation: this.#simulation,
      ...{ member, network, timing, images, address, hostAddress },
      tell: (told) => void this.#simulation.event(run.pod, { ...told, by: 'kubelet' }),
    })
    this.#runs.set(key, run)
    return run
  }

  /** An address of the node's range; the one that the pod had before, if it is free. */
  #freeAddress(index: number, before: string | undefined): string | undefined {
    const prefix = `10.${this.#options.nodes.subnet}.${index}.`
    const take = (address: string): string => {
      this.#addresses.add(address)
      return address
    }
    if (before?.startsWith(prefix) === true && !this.#addresses.has(before)) return take(before)
    // Addresses are given out in rotation: a client that knows an old endpoint does not reach another pod.
    for (let tries = firstHost; tries <= lastHost; tries++) {
      const next = this.#nextHost.get(index) ?? firstHost
      this.#nextHost.set(index, next >= lastHost ? firstHost : next + 1)
      if (!this.#addresses.has(`${prefix}${next}`)) return take(`${prefix}${next}`)
    }
    return undefined
  }

  #forget(key: string, run: PodRun): void {
    run.stop(Date.now())
    this.#runs.delete(key)
    this.#addresses.delete(run.address)
  }

  async #remove(key: string, pod: Pod): Promise<void> {
    const run = this.#runs.get(key)
    if (run !== undefined) this.#forget(key, run)
    await this.#simulation.delete('pods', pod, { gracePeriodSeconds: 0 }, 'kubelet')
  }

  async #writeStatus(pod: Pod, status: PodStatus): Promise<void> {
    const known = (pod.status ?? {}) as Readonly<Record<string, unknown>>
    if (Object.entries(status).every(([field, value]) => jsonEqual(known[field], value))) return
    await this.#simulation.patchStatus('pods', pod, status, 'kubelet')
  }
}
