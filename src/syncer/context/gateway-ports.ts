// The ports of the gateway in a member at which pods reach Services of other members. Which port leads where is said by
// the EndpointSlices in the member alone: they are read when the syncer starts.
import { gatewayListenerPorts, gatewayTargetAnnotation, maxGatewayPortsPerCluster } from '#crds/index.ts'
import type { CachedObject } from './resources.ts'

/** A slice by its namespace and name in the member. */
export interface SliceName {
  readonly namespace: string
  readonly name: string
}

/**
 * After this, a gateway listens on a port of which the API server has told it, milliseconds. Nobody must connect
 * before.
 */
const listensAfterMs = 2000

export class GatewayPorts {
  readonly #now: () => number
  readonly #owners = new Map<number, string>()
  /** Ports by slice, by the name of the port. */
  readonly #slices = new Map<string, Map<string, number>>()
  /** Number of ports by the id of the logical cluster. */
  readonly #counts = new Map<string, number>()
  /** By slice: when it first had the ports that it has. */
  readonly #writtenAt = new Map<string, { readonly ports: string; readonly atMs: number }>()
  #next: number = gatewayListenerPorts.first

  /** `now`: a clock that does not go back, milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Takes over what a slice in the member says. */
  load(slice: CachedObject): void {
    const { namespace = '', name = '', annotations } = slice.metadata
    if (annotations?.[gatewayTargetAnnotation] === undefined) return
    const ports = (slice['ports'] ?? []) as readonly { readonly name?: string; readonly port?: number }[]
    for (const { name: portName = '', port } of ports)
      if (port !== undefined && !this.#owners.has(port)) this.#take({ namespace, name }, portName, port)
  }

  /**
   * The port for one port of a slice, the same one while the slice is there. Undefined: there is none left for its
   * logical cluster.
   */
  portFor(slice: SliceName, portName: string): number | undefined {
    const known = this.#slices.get(keyOf(slice))?.get(portName)
    if (known !== undefined) return known
    if ((this.#counts.get(clusterOf(slice)) ?? 0) >= maxGatewayPortsPerCluster) return undefined
    const { first, last }: Readonly<Record<'first' | 'last', number>> = gatewayListenerPorts
    // The one after the last that was given: a port that was given back is not used again soon.
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
   * How long the slice must have no endpoints yet, since the gateway may not listen on its ports, milliseconds. `live`:
   * the slice in the member; undefined: it is created now.
   */
  listensInMs(slice: SliceName, wanted: CachedObject, live: CachedObject | undefined): number {
    const [key, ports] = [keyOf(slice), portsText(wanted)]
    const known = this.#writtenAt.get(key)
    if (known?.ports === ports) return Math.max(0, known.atMs + listensAfterMs - this.#now())
    // What was there before the syncer started, the gateway knows; and who has endpoints keeps them when a port is
    // added.
    const isNew = live === undefined || (portsText(live) !== ports && !hasEndpoints(live))
    this.#writtenAt.set(key, { ports, atMs: isNew ? this.#now() : Number.NEGATIVE_INFINITY })
    return isNew ? listensAfterMs : 0
  }

  /** The slice is gone. */
  release(slice: SliceName): void {
    const key = keyOf(slice)
    this.#writtenAt.delete(key)
    const ports = this.#slices.get(key)
    if (ports === undefined) return
    this.#slices.delete(key)
    for (const port of ports.values()) this.#owners.delete(port)
    const left = (this.#counts.get(clusterOf(slice)) ?? 0) - ports.size
    if (left > 0) this.#counts.set(clusterOf(slice), left)
    else this.#counts.delete(clusterOf(slice))
  }

  #take(slice: SliceName, portName: string, port: number): void {
    const key = keyOf(slice)
    this.#owners.set(port, key)
    const ports = this.#slices.get(key) ?? new Map<string, number>()
    this.#slices.set(key, ports.set(portName, port))
    this.#counts.set(clusterOf(slice), (this.#counts.get(clusterOf(slice)) ?? 0) + 1)
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

function clusterOf({ namespace }: SliceName): string {
  return namespace.slice(0, 10)
}
