// The ports of the gateway in a member at which pods reach Services of other members. Which port leads where is said by the
// EndpointSlices in the member alone: they are read when the syncer starts.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import type { DeepReadonly } from '../../client/index.ts'
import { gatewayListenerPorts, gatewayTargetAnnotation, maxGatewayPortsPerCluster } from '../../crds/index.ts'

/** A slice by its namespace and name in the member. */
export interface SliceName {
  readonly namespace: string
  readonly name: string
}

export class GatewayPorts {
  readonly #owners = new Map<number, string>()
  /** Ports by slice, by the name of the port. */
  readonly #slices = new Map<string, Map<string, number>>()
  /** Number of ports by the id of the logical cluster. */
  readonly #counts = new Map<string, number>()
  #next: number = gatewayListenerPorts.first

  /** Takes over what a slice in the member says. */
  load(slice: DeepReadonly<KubeObject>): void {
    const { namespace = '', name = '', annotations } = slice.metadata
    if (annotations?.[gatewayTargetAnnotation] === undefined) return
    const ports = (slice['ports'] ?? []) as readonly { readonly name?: string; readonly port?: number }[]
    for (const { name: portName = '', port } of ports)
      if (port !== undefined && !this.#owners.has(port)) this.#take({ namespace, name }, portName, port)
  }

  /** The port for one port of a slice, the same one while the slice is there. Undefined: there is none left for its logical cluster. */
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

  /** The slice is gone. */
  release(slice: SliceName): void {
    const key = keyOf(slice)
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

function keyOf({ namespace, name }: SliceName): string {
  return `${namespace}/${name}`
}

function clusterOf({ namespace }: SliceName): string {
  return namespace.slice(0, 10)
}
