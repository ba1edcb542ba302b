// The simulated client of the demo: sends requests to a Service of a logical cluster, and counts those that fail. It
// asks the API which endpoints are ready, as a load balancer does, and calls one of them in the simulated network.
import { randomInt } from 'node:crypto'
import { sleep } from '#async/index.ts'
import { createInformer, type KubeClient } from '#client/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { gvrOf, type EndpointSlice } from '#simulation/cluster/objects.ts'
import type { Network } from '#simulation/runtime/network.ts'
import { readyTargets } from '#simulation/runtime/service-lookup.ts'

export interface TrafficOptions {
  /** The API of the logical cluster. */
  readonly client: KubeClient
  readonly namespace: string
  readonly service: string
  readonly portName: string
  readonly network: Network
  readonly log: Logger
  readonly signal: AbortSignal
}

/** The requests so far. */
export interface TrafficReport {
  readonly sent: number
  readonly failed: number
  /** Why the last one failed. */
  readonly lastFailure: string
  /** Members that answered during the last seconds, with their share in percent. */
  readonly members: ReadonlyMap<string, number>
  /** Requests of the last seconds that failed. */
  readonly failing: number
}

const everyMs = 50
const recentMs = 3000

interface Outcome {
  readonly atMs: number
  readonly member: string | undefined
}

export class Traffic {
  readonly #options: TrafficOptions
  #slices: readonly EndpointSlice[] = []
  #sent = 0
  #failed = 0
  #lastFailure = ''
  #recent: Outcome[] = []

  constructor(options: TrafficOptions) {
    this.#options = options
  }

  /** Sends requests until the signal aborts; the first one as soon as the Service has an endpoint. */
  async run(): Promise<void> {
    const { client, namespace, service, log, signal } = this.#options
    const labelSelector = `kubernetes.io/service-name=${service}`
    const informer = createInformer<EndpointSlice>({
      client,
      gvr: gvrOf('endpointslices'),
      namespace,
      labelSelector,
      log,
      signal,
    })
    informer.onChange(() => (this.#slices = informer.store.list() as EndpointSlice[]))
    while (this.#targets().length === 0) await sleep(everyMs, signal)
    for (;;) {
      void this.#send()
      await sleep(everyMs, signal)
    }
  }

  get report(): TrafficReport {
    const since = Date.now() - recentMs
    this.#recent = this.#recent.filter(({ atMs }) => atMs > since)
    const answered = this.#recent.flatMap(({ member }) => member ?? [])
    const counts = Map.groupBy(answered, (member) => member)
    const members = [...counts].map(
      ([member, all]) => [member, Math.round((all.length * 100) / answered.length)] as const,
    )
    return {
      sent: this.#sent,
      failed: this.#failed,
      lastFailure: this.#lastFailure,
      members: new Map(members.sort(([a], [b]) => a.localeCompare(b))),
      failing: this.#recent.length - answered.length,
    }
  }

  #targets(): ReturnType<typeof readyTargets> {
    return readyTargets(this.#slices, this.#options.portName)
  }

  async #send(): Promise<void> {
    this.#sent++
    let member: string | undefined
    try {
      const targets = this.#targets()
      const target = targets[randomInt(Math.max(1, targets.length))]
      if (target === undefined) throw new Error(`Service "${this.#options.service}" has no ready endpoint`)
      const request = { method: 'GET', path: '/', from: 'the demo client', depth: 0 }
      const { status, body } = await this.#options.network.request(target.address, target.port, request)
      if (status !== 200) throw new Error(`${status} ${body.trim()}`)
      member = /in member (\S+)/.exec(body)?.[1] ?? ''
    } catch (error) {
      this.#failed++
      this.#lastFailure = error instanceof Error ? error.message : String(error)
    }
    this.#recent.push({ atMs: Date.now(), member })
  }
}
