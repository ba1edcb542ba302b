// The ports of the gateway in a member at which pods reach Services of other members. Only the EndpointSlices in the
// member say which port leads to which Service, so the syncer reads them when it starts.
import {
  gatewayListenerPorts,
  gatewayTargetAnnotation,
  maxGatewayPortsPerCluster,
  parseAnnotation,
} from '#crds/index.ts'
import type { CachedObject } from './resources.ts'

/** A slice by its namespace and name in the member. */
export interface SliceName {
  readonly namespace: string
  readonly name: string
}

/** A slice whose ports count for a logical cluster. */
export interface CountedSlice extends SliceName {
  /** The usual name of its namespace, ID-NAME. */
  readonly usualNamespace: string
}

interface TakenPorts {
  readonly clusterId: string
  /** By port name of the slice. */
  readonly ports: Map<string, number>
}

/**
 * How long after the write of a slice the gateway listens on its new ports, milliseconds. No client must connect
 * earlier.
 */
const listensAfterMs = 2000

export class GatewayPorts {
  readonly #now: () => number
  readonly #owners = new Map<number, string>()
  /** By slice (keyOf). */
  readonly #slices = new Map<string, TakenPorts>()
  /** Number of ports by the id of the logical cluster. */
  readonly #counts = new Map<string, number>()
  /** By slice (keyOf): its present ports as text, and when it first had them (`now`). */
  readonly #writtenAt = new Map<string, { readonly ports: string; readonly atMs: number }>()
  #next: number = gatewayListenerPorts.first

  /** `now`: a clock that does not go back, milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Takes over the ports that a slice in the member has. */
  load(slice: CachedObject): void {
    const { namespace = '', name = '', annotations } = slice.metadata
    if (annotations?.[gatewayTargetAnnotation] === undefined) return
    const { namespace: target } = parseAnnotation(slice, gatewayTargetAnnotation)
    const usualNamespace = typeof target === 'string' ? target : namespace
    const ports = (slice['ports'] ?? []) as readonly { readonly name?: string; readonly port?: number }[]
    for (const { name: portName = '', port } of ports)
      if (port !== undefined && !this.#owners.has(port)) this.#take({ namespace, name, usualNamespace }, portName, port)
  }

  /**
   * The gateway's port for one port of a slice; it stays the same while the slice exists. Undefined: no port is left,
   * or the logical cluster has maxGatewayPortsPerCluster already.
   */
  portFor(slice: CountedSlice, portName: string): number | undefined {
    const known = this.#slices.get(keyOf(slice))?.ports.get(portName)
    if (known !== undefined) return known
    if ((this.#counts.get(clusterOf(slice)) ?? 0) >= maxGatewayPortsPerCluster) return undefined
    const { first, last }: Readonly<Record<'first' | 'last', number>> = gatewayListenerPorts
    // The search starts after the port that was given last, so a port that was given back is not used again soon.
    for (let tried = first; tried <= last; tried++) {
      const port = this.#next
      this.#next = port === last ? first : port + 1
      if (this.#owners.has(port)) continue
      this.#take(slice, portName, port)
      return port
    }
    return undefined
  }

  /**
   * For how many more milliseconds the slice must have no endpoints, because the gateway may not listen on its ports
   * yet. `live`: the slice in the member; undefined: it is created now.
   */
  listensInMs(slice: SliceName, wanted: CachedObject, live: CachedObject | undefined): number {
    const [key, ports] = [keyOf(slice), portsText(wanted)]
    const known = this.#writtenAt.get(key)
    if (known?.ports === ports) return Math.max(0, known.atMs + listensAfterMs - this.#now())
    // The gateway knows the ports from before the start of the syncer, and a slice with endpoints keeps them when a
    // port is added.
    const isNew = live === undefined || (portsText(live) !== ports && !hasEndpoints(live))
    this.#writtenAt.set(key, { ports, atMs: isNew ? this.#now() : Number.NEGATIVE_INFINITY })
    return isNew ? listensAfterMs : 0
  }

  /** Gives back the ports of a slice that is gone. */
  release(slice: SliceName): void {
    const key = keyOf(slice)
    this.#writtenAt.delete(key)
    const taken = this.#slices.get(key)
    if (taken === undefined) return
    const { clusterId, ports } = taken
    this.#slices.delete(key)
    for (const port of ports.values()) this.#owners.delete(port)
    const left = (this.#counts.get(clusterId) ?? 0) - ports.size
    if (left > 0) this.#counts.set(clusterId, left)
    else this.#counts.delete(clusterId)
  }

  #take(slice: CountedSlice, portName: string, port: number): void {
    const key = keyOf(slice)
    this.#owners.set(port, key)
    const taken = this.#slices.get(key) ?? { clusterId: clusterOf(slice), ports: new Map<string, number>() }
    taken.ports.set(portName, port)
    this.#slices.set(key, taken)
    this.#counts.set(taken.clusterId, (this.#counts.get(taken.clusterId) ?? 0) + 1)
    if (port >= this.#next) this.#next = port === gatewayListenerPorts.last ? gatewayListenerPorts.first : port + 1
  }
}

function hasEndpoints(slice: CachedObject): boolean {
  return ((slice['endpoints'] ?? []) as readonly unknown[]).length > 0
}

function portsText(slice: CachedObject): string {
  const ports = (slice['ports'] ?? []) as readonly { readonly port?: number }[]
  return ports.map(({ port }) => port).join()
}

function keyOf({ namespace, name }: SliceName): string {
  return `${namespace}/${name}`
}

function clusterOf({ usualNamespace }: CountedSlice): string {
  return usualNamespace.slice(0, 10)
}
