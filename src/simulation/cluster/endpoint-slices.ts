// EndpointSlices of Services with a selector.
import { jsonEqual } from '#apimachinery/json/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { serviceSelects } from '#apimachinery/selector/index.ts'
import {
  controlledBy,
  keyOf,
  type Endpoint,
  type EndpointSlice,
  type Pod,
  type Service,
  type ServicePort,
} from './objects.ts'
import { hasEnded, isReady } from './pod-facts.ts'
import type { Simulation } from './simulation.ts'

const by = 'endpointslice-controller'
const managedBy = { 'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io' }
const serviceLabel = 'kubernetes.io/service-name'
const maxEndpoints = 1000

export function startEndpointSlices(simulation: Simulation): void {
  const { services, pods, endpointslices } = simulation.cache
  simulation.loop({
    name: by,
    follow(enqueue) {
      services.onChange((after) => {
        if (after !== undefined) enqueue(keyOf(after))
      })
      pods.onChange((after, before) => {
        const pod = after ?? before
        for (const service of services.inNamespace(pod?.metadata.namespace ?? ''))
          if ([after, before].some((one) => one !== undefined && serviceSelects(service, one.metadata.labels)))
            enqueue(keyOf(service))
      })
      endpointslices.onChange((after, before) => {
        const { labels = {}, namespace = '' } = (after ?? before)?.metadata ?? {}
        if (labels[serviceLabel] !== undefined && isOwn(labels)) enqueue(`${namespace}/${labels[serviceLabel]}`)
      })
    },
    reconcile: async (key) => {
      const service = services.get(key)
      // Without their Service, slices are garbage and go with it.
      if (service === undefined || service.metadata.deletionTimestamp !== undefined || service.spec.selector == null)
        return
      await reconcileService(simulation, service)
    },
  })
}

function isOwn(labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(managedBy).every(([name, value]) => labels[name] === value)
}

async function reconcileService(simulation: Simulation, service: Service): Promise<void> {
  const { namespace = '', name = '' } = service.metadata
  const known = simulation.cache.endpointslices
    .inNamespace(namespace)
    .filter(
      ({ metadata: { labels = {}, deletionTimestamp } }) =>
        labels[serviceLabel] === name && isOwn(labels) && deletionTimestamp === undefined,
    )
  const pods = simulation.cache.pods
    .inNamespace(namespace)
    .filter(
      (pod) =>
        serviceSelects(service, pod.metadata.labels) && pod.status?.podIP !== undefined && !hasEnded(pod.status.phase),
    )
    .sort((a, b) => (a.metadata.name ?? '').localeCompare(b.metadata.name ?? ''))
    .slice(0, maxEndpoints)
  const wanted = groupByPorts(simulation, service, pods)
  for (const [i, content] of wanted.entries()) {
    const slice = known[i]
    if (slice === undefined) await createSlice(simulation, service, content)
    else if (!isSame(slice, content)) await simulation.patch('endpointslices', slice, content)
  }
  for (const slice of known.slice(wanted.length)) await simulation.delete('endpointslices', slice)
}

interface Content {
  readonly ports: EndpointSlice['ports']
  readonly endpoints: readonly Endpoint[]
}

/** Pods whose named ports have the same numbers share a slice. Without pods, there is one empty slice. */
function groupByPorts(simulation: Simulation, service: Service, pods: readonly Pod[]): Content[] {
  const ports = service.spec.ports ?? []
  const groups = Map.groupBy(pods, (pod) => JSON.stringify(ports.map((port) => portOf(pod, port))))
  if (groups.size === 0) return [{ ports: null, endpoints: [] }]
  return [...groups.values()].map((group) => ({
    ports: ports.flatMap((port) => {
      const number = portOf(group[0], port)
      if (number === undefined) return []
      const { name = '', protocol = 'TCP', appProtocol } = port
      return [{ name, port: number, protocol, ...(appProtocol !== undefined && { appProtocol }) }]
    }),
    endpoints: group.map((pod) => endpointOf(simulation, service, pod)),
  }))
}

function portOf(pod: Pod | undefined, { port, targetPort = port }: ServicePort): number | undefined {
  if (typeof targetPort === 'number') return targetPort === 0 ? port : targetPort
  const all = (pod?.spec.containers ?? []).flatMap(({ ports = [] }) => ports)
  return all.find(({ name }) => name === targetPort)?.containerPort
}

function endpointOf(simulation: Simulation, service: Service, pod: Pod): Endpoint {
  const { name = '', namespace = '', uid = '', deletionTimestamp } = pod.metadata
  const [isServing, isEnding] = [isReady(pod), deletionTimestamp !== undefined]
  const node = simulation.cache.nodes.get(pod.spec.nodeName ?? '')
  const zone = node?.metadata.labels?.['topology.kubernetes.io/zone']
  const { hostname, subdomain, nodeName } = pod.spec
  const published = service.spec.publishNotReadyAddresses === true
  return {
    addresses: [pod.status?.podIP ?? ''],
    conditions: { ready: published || (isServing && !isEnding), serving: isServing, terminating: isEnding },
    ...(hostname !== undefined && subdomain === service.metadata.name && { hostname }),
    ...(nodeName !== undefined && { nodeName }),
    ...(zone !== undefined && { zone }),
    targetRef: { kind: 'Pod', name, namespace, uid },
  }
}

function isSame(slice: EndpointSlice, { ports, endpoints }: Content): boolean {
  return jsonEqual(slice.endpoints ?? [], endpoints) && jsonEqual(slice.ports ?? [], ports ?? [])
}

async function createSlice(simulation: Simulation, service: Service, content: Content): Promise<void> {
  const { namespace = '', name = '', labels } = service.metadata
  const object: KubeObject = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      generateName: `${name}-`,
      namespace,
      labels: {
        ...labels,
        [serviceLabel]: name,
        ...managedBy,
        ...(service.spec.clusterIP === 'None' && { 'service.kubernetes.io/headless': '' }),
      },
      ownerReferences: [controlledBy(service)],
    },
    addressType: 'IPv4',
    ...content,
  }
  await simulation.create('endpointslices', object)
}
