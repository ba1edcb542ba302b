// Warnings about containers: definitions that hide others, and byte amounts that are not whole numbers.
import type { V1Container, V1ContainerPort, V1PodSpec } from '@kubernetes/client-node'
import { goQuote } from '#apimachinery/text/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { fractionalByteWarnings } from './fractional-byte-warnings.ts'

type Container = Data<V1Container>
type Port = Data<V1ContainerPort>

type ContainerAt = readonly [path: string, Container]

/** The containers of a pod with their paths, in upstream's order. */
export function pathsOfContainers(path: string, spec: Data<V1PodSpec>): readonly ContainerAt[] {
  const { initContainers, containers, ephemeralContainers } = spec
  const regular = withPaths(`${path}.containers`, containers)
  if (initContainers === undefined && ephemeralContainers === undefined) return regular
  return [
    ...withPaths(`${path}.initContainers`, initContainers),
    ...regular,
    ...withPaths(`${path}.ephemeralContainers`, ephemeralContainers),
  ]
}

const withPaths = (path: string, containers: readonly Container[] | undefined): ContainerAt[] =>
  containers?.map((container, index) => [`${path}[${index}]`, container]) ?? []

const inBytes = ['memory', 'ephemeral-storage']

/** Warnings about the requests and limits of a container. */
export function* amountWarnings(
  path: string,
  { limits, requests }: NonNullable<Container['resources']>,
): Iterable<string> {
  for (const name of inBytes) {
    if (limits?.[name] !== undefined) yield* fractionalByteWarnings(`${path}.limits`, limits, [name])
    if (requests?.[name] !== undefined) yield* fractionalByteWarnings(`${path}.requests`, requests, [name])
  }
}

/** Warnings about variables that are defined twice, unless the second value refers to the first. */
export function* envWarnings(path: string, env: NonNullable<Container['env']>): Iterable<string> {
  const seen = new Set<string>()
  for (const [index, { name, value = '', valueFrom }] of env.entries()) {
    const own = `$(${name})`
    if (seen.has(name) && (valueFrom !== undefined || value === own || !value.includes(own)))
      yield `${path}[${index}]: hides previous definition of ${goQuote(name)}, which may be dropped when using apply`
    seen.add(name)
  }
}

/**
 * The most ports of a pod for which warnings are computed. Each port is compared with all other ports of its number,
 * which is quadratic.
 */
const maxPorts = 1000

/** Warnings about the ports of all containers of a pod. */
export function* portWarnings(containers: readonly ContainerAt[]): Iterable<string> {
  const ports = containers.flatMap(([at, container]) =>
    (container.ports ?? []).map((port, index) => ({ at: `${at}.ports[${index}]`, port })),
  )
  if (ports.length === 0 || ports.length > maxPorts) return
  const byNumber = new Map<string, typeof ports>()
  for (const one of ports) {
    const { port, at } = one
    if (port.hostIP && !port.hostPort) yield `${at}: hostIP set without hostPort: ${printed(port)}`
    if (ports.length === 1) return
    const key = `${port.containerPort}/${port.protocol}`
    const others = byNumber.get(key)
    for (const other of others ?? []) {
      const how = overlap(port, other.port)
      if (how !== undefined) yield `${at}: ${how} port definition with ${other.at}`
    }
    if (others === undefined) byNumber.set(key, [one])
    else others.push(one)
  }
  yield* portNameWarnings(ports)
}

/** A port as Go's %+v prints it. */
const printed = ({ name = '', hostPort = 0, containerPort, protocol = '', hostIP = '' }: Port): string =>
  `{Name:${name} HostPort:${hostPort} ContainerPort:${containerPort} Protocol:${protocol} HostIP:${hostIP}}`

/** The kind of conflict of two ports with the same number; undefined if they do not conflict. */
function overlap(
  { hostIP = '', hostPort = 0 }: Port,
  { hostIP: otherIp = '', hostPort: otherPort = 0 }: Port,
): string | undefined {
  if (hostIP === otherIp && hostPort === otherPort) return 'duplicate'
  if (hostPort === 0 || otherPort === 0) return 'overlapping'
  return hostPort === otherPort && (hostIP === '') !== (otherIp === '') ? 'dangerously ambiguous' : undefined
}

function* portNameWarnings(ports: readonly { at: string; port: Port }[]): Iterable<string> {
  const names = new Map<string, string>()
  for (const { at, port } of ports) {
    if (!port.name) continue
    const other = names.get(port.name)
    if (other === undefined) names.set(port.name, at)
    else
      yield `${at}: duplicate port name ${goQuote(port.name)} with ${other}, services and probes that select ports by name will use ${other}`
  }
}
