// The usage of one object in a quota (the evaluators of k8s.io/kubernetes/pkg/quota/v1/evaluator/core).
import { isJsonObject, type JsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import {
  addAmounts,
  type Amounts,
  amountsOf,
  podLevelAmounts,
  type Quantity,
  quantityOf,
  totalOfPod,
} from '#apimachinery/quantity/index.ts'
import { claimCountsFor, deviceUsage, resourceClaims } from './device-usage.ts'

/** Short names of counts, from the time before `count/`. */
const aliases: Readonly<Record<string, string>> = {
  configmaps: 'configmaps',
  resourcequotas: 'resourcequotas',
  replicationcontrollers: 'replicationcontrollers',
  secrets: 'secrets',
}
const computed = ['cpu', 'memory', 'ephemeral-storage']
const ofPods: ReadonlySet<string> = new Set([
  'count/pods',
  'pods',
  ...computed.flatMap((name) => [name, `requests.${name}`, `limits.${name}`]),
])
const ofServices: ReadonlySet<string> = new Set([
  'count/services',
  'services',
  'services.nodeports',
  'services.loadbalancers',
])
const classInfix = '.storageclass.storage.k8s.io/'
const ofClaims = ['persistentvolumeclaims', 'requests.storage']
const one: Quantity = { nanos: 1_000_000_000n, format: 'DecimalSI' }

const isNative = (name: string): boolean => !name.includes('/') || name.includes('kubernetes.io/')

/**
 * True if objects of a resource count for this name in spec.hard. `storageKey`: such as `pods` or `deployments.apps`.
 */
export function countsFor(storageKey: string, name: string): boolean {
  switch (storageKey) {
    case 'pods':
      if (ofPods.has(name) || name.startsWith('hugepages-') || name.startsWith('requests.hugepages-')) return true
      return name.startsWith('requests.') && !isNative(name)
    case 'services':
      return ofServices.has(name)
    case 'persistentvolumeclaims':
      if (name === 'count/persistentvolumeclaims' || ofClaims.includes(name)) return true
      return ofClaims.some((resource) => name.endsWith(classInfix + resource))
    case resourceClaims:
      return claimCountsFor(name)
    default:
      return name === `count/${storageKey}` || name === aliases[storageKey]
  }
}

/** Resources whose usage depends on the content of their objects. */
export const measuredResources = ['pods', 'services', 'persistentvolumeclaims', resourceClaims] as const

/** The resource whose objects a name in spec.hard only counts; undefined for measured resources and for other names. */
export function countedResource(name: string): string | undefined {
  const resource = name.startsWith('count/') ? name.slice('count/'.length) : aliases[name]
  return measuredResources.some((measured) => measured === resource) ? undefined : resource
}

/** The amounts that an object uses, by name in spec.hard. `now`: milliseconds since the epoch. */
export function usageOf(storageKey: string, object: KubeObject, now: number): Amounts {
  switch (storageKey) {
    case 'pods':
      return podUsage(object, now)
    case 'services':
      return serviceUsage(object)
    case 'persistentvolumeclaims':
      return claimUsage(object)
    case resourceClaims:
      return deviceUsage(object)
    default: {
      const alias = aliases[storageKey]
      return new Map([[`count/${storageKey}`, one], ...(alias === undefined ? [] : [[alias, one] as const])])
    }
  }
}

/**
 * The amounts that a pod uses. A pod that has ended counts only as an object; so does a pod that still exists one grace
 * period after its deletionTimestamp.
 */
function podUsage(pod: KubeObject, now: number): Amounts {
  const usage = new Map([['count/pods', one]])
  if (hasEnded(pod, now)) return usage
  const spec = pod['spec'] as JsonObject
  addAmounts(usage, computeUsage(totalOfPod(spec, 'requests'), totalOfPod(spec, 'limits')))
  usage.set('pods', one)
  return usage
}

function hasEnded({ metadata, status }: KubeObject, now: number): boolean {
  const { phase } = (status ?? {}) as { phase?: string }
  if (phase === 'Failed' || phase === 'Succeeded') return true
  const { deletionTimestamp, deletionGracePeriodSeconds } = metadata
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds === undefined) return false
  return now > Date.parse(deletionTimestamp) + Number(deletionGracePeriodSeconds) * 1000
}

/** The names in spec.hard for which these requests and limits count. */
function computeUsage(requests: Amounts, limits: Amounts): Map<string, Quantity> {
  const usage = new Map<string, Quantity>()
  for (const [name, amount] of requests) {
    const isPlain = computed.includes(name) || name.startsWith('hugepages-')
    if (isPlain) usage.set(name, amount)
    if (isPlain || isExtended(name)) usage.set(`requests.${name}`, amount)
  }
  for (const name of computed) {
    const limit = limits.get(name)
    if (limit !== undefined) usage.set(`limits.${name}`, limit)
  }
  return usage
}

function isExtended(name: string): boolean {
  return !isNative(name) && !name.startsWith('requests.')
}

/**
 * The names for which a quota requires that containers name an amount. Upstream requires cpu and memory only, by
 * mistake; this is kept.
 */
const required = ['cpu', 'memory'].flatMap((name) => [name, `requests.${name}`, `limits.${name}`])

/**
 * A message that names the resources that a quota with these names requires and the containers that do not name them;
 * undefined if there are none.
 */
export function missingText(names: Iterable<string>, pod: KubeObject): string | undefined {
  const spec = pod['spec'] as JsonObject
  if (podLevelAmounts(spec, 'requests').length > 0 || podLevelAmounts(spec, 'limits').length > 0) return undefined
  const wanted = [...names].filter((name) => required.includes(name)).sort()
  const missing = wanted.flatMap((name) => {
    const containers = containersOf(spec).filter((container) => !containerUsage(container).has(name))
    if (containers.length === 0) return []
    const containerNames = new Set(containers.map((container) => container['name'] as string))
    return [`${name} for: ${[...containerNames].sort().join(',')}`]
  })
  return missing.length === 0 ? undefined : `must specify ${missing.join('; ')}`
}

function containersOf(spec: JsonObject): JsonObject[] {
  return ['containers', 'initContainers'].flatMap((member) => {
    const list = spec[member]
    return Array.isArray(list) ? list.filter(isJsonObject) : []
  })
}

function containerUsage({ resources }: JsonObject): Amounts {
  const { requests, limits } = isJsonObject(resources) ? resources : {}
  return computeUsage(amountsOf(isJsonObject(requests) ? requests : {}), amountsOf(isJsonObject(limits) ? limits : {}))
}

interface ServiceSpec {
  readonly type?: string
  readonly ports?: readonly { readonly nodePort?: number }[]
  readonly allocateLoadBalancerNodePorts?: boolean
}

function serviceUsage(service: KubeObject): Amounts {
  const { type, ports = [], allocateLoadBalancerNodePorts = true } = service['spec'] as ServiceSpec
  const allocated = type === 'NodePort' || (type === 'LoadBalancer' && allocateLoadBalancerNodePorts)
  const explicit = type === 'LoadBalancer' ? ports.filter(({ nodePort = 0 }) => nodePort !== 0).length : 0
  return new Map([
    ['count/services', one],
    ['services', one],
    ['services.nodeports', numberOf(allocated ? ports.length : explicit)],
    ['services.loadbalancers', numberOf(type === 'LoadBalancer' ? 1 : 0)],
  ])
}

function numberOf(count: number): Quantity {
  return { nanos: BigInt(count) * one.nanos, format: 'DecimalSI' }
}

interface ClaimSpec {
  readonly storageClassName?: string
  readonly resources?: { readonly requests?: Readonly<Record<string, string>> }
}

function claimUsage(claim: KubeObject): Amounts {
  const spec = claim['spec'] as ClaimSpec
  const className = claim.metadata.annotations?.['volume.beta.kubernetes.io/storage-class'] ?? spec.storageClassName
  const usage = new Map([
    ['persistentvolumeclaims', one],
    ['count/persistentvolumeclaims', one],
  ])
  const storage = storageOf(claim, spec)
  if (storage !== undefined) usage.set('requests.storage', storage)
  if (!className) return usage
  usage.set(`${className}${classInfix}persistentvolumeclaims`, one)
  if (storage !== undefined) usage.set(`${className}${classInfix}requests.storage`, storage)
  return usage
}

/**
 * The requested storage or, if it is larger, the allocated storage, rounded up to whole bytes; undefined if none is
 * requested.
 */
function storageOf({ status }: KubeObject, { resources }: ClaimSpec): Quantity | undefined {
  const requested = resources?.requests?.['storage']
  if (requested === undefined) return undefined
  const { allocatedResources } = (status ?? {}) as { allocatedResources?: Readonly<Record<string, string>> }
  const allocated = quantityOf(allocatedResources?.['storage'] ?? '0')
  const wanted = quantityOf(requested)
  const { nanos, format } = allocated.nanos > wanted.nanos ? allocated : wanted
  const rest = nanos % one.nanos
  return { nanos: rest === 0n ? nanos : nanos - rest + one.nanos, format }
}
