// The destinations of connections to the Services of this member. A member that hands its traffic over loses its last
// endpoint before all other members know, so pods that have just left a Service are remembered: they serve until they
// are deleted.
import type { Clock } from '#async/index.ts'
import type { LocalSlice } from './slice-record.ts'
import type { Target } from './wire.ts'

export interface Endpoint {
  readonly address: string
  readonly port: number
  /** `NAMESPACE/NAME`; empty if it is not known. */
  readonly pod: string
}

/** How long an endpoint that has left is remembered, and how many are remembered for one port of a Service. */
const rememberedMs = 10 * 60_000
const maxRemembered = 16

interface ServicePort {
  readonly slices: Map<string, { readonly ready: readonly Endpoint[]; readonly ending: readonly Endpoint[] }>
  ready: Endpoint[]
  /** Endpoints that are no longer ready but still serve. */
  ending: Endpoint[]
  /** Endpoints that have left, the most recent first. */
  left: { readonly endpoint: Endpoint; readonly untilMs: number }[]
}

export interface ServiceEndpointsOptions {
  readonly clock: Pick<Clock, 'monotonic'>
  /** Returns a random number in [0, 1). */
  readonly random: () => number
  /**
   * Whether this address belongs to this pod now: the address of a deleted pod may be given to a pod of another tenant.
   */
  readonly isOfPod: (address: string, pod: string) => boolean
}

export class ServiceEndpoints {
  readonly #options: ServiceEndpointsOptions
  readonly #ports = new Map<string, ServicePort>()
  /** Open connections by endpoint. */
  readonly #open = new Map<string, number>()

  constructor(options: ServiceEndpointsOptions) {
    this.#options = options
  }

  /** Replaces the endpoints of one slice. */
  set(key: string, before: LocalSlice | undefined, after: LocalSlice | undefined): void {
    const names = new Set([before, after].flatMap((slice) => (slice === undefined ? [] : portKeys(slice))))
    for (const name of names) this.#setPort(name, key, after)
  }

  /** Up to three endpoints, in the order in which they are tried. */
  choose(target: Target): Endpoint[] {
    const known = this.#ports.get(portKey(target.namespace, target.service, target.port))
    if (known === undefined) return []
    if (known.ready.length > 0) return this.#ofReady(known.ready)
    const now = this.#options.clock.monotonic()
    const left = known.left.filter(
      ({ endpoint, untilMs }) => untilMs > now && this.#options.isOfPod(endpoint.address, endpoint.pod),
    )
    return [...known.ending, ...left.map(({ endpoint }) => endpoint)].slice(0, maxTried)
  }

  /** Counts a connection to the endpoint until the function that it returns is called. */
  opened(endpoint: Endpoint): () => void {
    const key = keyOf(endpoint)
    this.#open.set(key, (this.#open.get(key) ?? 0) + 1)
    return () => {
      const rest = (this.#open.get(key) ?? 1) - 1
      if (rest === 0) this.#open.delete(key)
      else this.#open.set(key, rest)
    }
  }

  /** Forgets endpoints that were remembered for too long. */
  sweep(): void {
    const now = this.#options.clock.monotonic()
    for (const [name, port] of this.#ports) {
      port.left = port.left.filter(({ untilMs }) => untilMs > now)
      if (port.slices.size === 0 && port.left.length === 0) this.#ports.delete(name)
    }
  }

  /** Number of Service ports that are known or remembered. */
  get size(): number {
    return this.#ports.size
  }

  #setPort(name: string, key: string, slice: LocalSlice | undefined): void {
    const port: ServicePort = this.#ports.get(name) ?? { slices: new Map(), ready: [], ending: [], left: [] }
    const before = [...port.ready, ...port.ending]
    const numbers = slice?.ports.filter((one) => portKey(slice.namespace, slice.service, one.name) === name) ?? []
    if (slice === undefined || numbers.length === 0) port.slices.delete(key)
    else {
      const of = (isReady: boolean): Endpoint[] =>
        slice.endpoints
          .filter((endpoint) => endpoint.isReady === isReady)
          .flatMap(({ address, pod }) => numbers.map((one) => ({ address, pod, port: one.port })))
      port.slices.set(key, { ready: of(true), ending: of(false) })
    }
    port.ready = [...port.slices.values()].flatMap(({ ready }) => ready)
    port.ending = [...port.slices.values()].flatMap(({ ending }) => ending)
    this.#remember(port, before)
    if (port.slices.size === 0 && port.left.length === 0) this.#ports.delete(name)
    else this.#ports.set(name, port)
  }

  #remember(port: ServicePort, before: readonly Endpoint[]): void {
    const present = new Set([...port.ready, ...port.ending].map(keyOf))
    const untilMs = this.#options.clock.monotonic() + rememberedMs
    const gone = before.filter((endpoint) => !present.has(keyOf(endpoint))).map((endpoint) => ({ endpoint, untilMs }))
    if (gone.length === 0 && port.left.length === 0) return
    const leaving = new Set(gone.map(({ endpoint }) => keyOf(endpoint)))
    const still = port.left.filter(({ endpoint }) => !present.has(keyOf(endpoint)) && !leaving.has(keyOf(endpoint)))
    port.left = [...gone, ...still].slice(0, maxRemembered)
  }

  /**
   * Up to three endpoints: each has the fewer connections of two drawn at random. The busiest is chosen only if no
   * other is left.
   */
  #ofReady(ready: readonly Endpoint[]): Endpoint[] {
    const chosen: Endpoint[] = []
    const drawn = new Set<number>()
    const draw = (): number => {
      let at = Math.floor(this.#options.random() * ready.length)
      // The next one that is not drawn yet.
      while (drawn.has(at)) at = (at + 1) % ready.length
      drawn.add(at)
      return at
    }
    while (chosen.length < maxTried && drawn.size < ready.length) {
      const one = draw()
      if (drawn.size === ready.length) {
        chosen.push(ready[one] as Endpoint)
        break
      }
      const other = draw()
      const [better, worse] =
        this.#openTo(ready[other] as Endpoint) < this.#openTo(ready[one] as Endpoint) ? [other, one] : [one, other]
      drawn.delete(worse)
      chosen.push(ready[better] as Endpoint)
    }
    return chosen
  }

  #openTo(endpoint: Endpoint): number {
    return this.#open.get(keyOf(endpoint)) ?? 0
  }
}

/** Maximum number of endpoints that one connection tries. */
const maxTried = 3

function keyOf({ address, port }: Endpoint): string {
  return `${address} ${port}`
}

function portKey(namespace: string, service: string, port: string): string {
  return `${namespace}/${service}/${port}`
}

function portKeys({ namespace, service, ports }: LocalSlice): string[] {
  return ports.map(({ name }) => portKey(namespace, service, name))
}
