// The headers that tell a client which FlowSchema and PriorityLevelConfiguration of its logical cluster its request
// belongs to.
import { LRUCache } from 'lru-cache'
import { remember } from '#apimachinery/memo/index.ts'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import type { BaseLayer, ClusterObjects } from '#store/watch-cache/index.ts'
import { byPrecedence, classify, type ClassifiedRequest, type Flow, flowOf } from '#virtualapi/flowcontrol/classify.ts'
import { decodeMetadata, decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'

const flowKey = 'flowschemas.flowcontrol.apiserver.k8s.io'
const levelKey = 'prioritylevelconfigurations.flowcontrol.apiserver.k8s.io'

interface Known {
  readonly changes: readonly [number, number]
  /**
   * The flows whose priority level exists, in order of precedence. Logical clusters with equal FlowSchemas share one
   * array.
   */
  readonly flows: readonly Flow[]
  /** Headers of flows that a request belonged to, by name. */
  readonly headers: Map<string, Headers>
  /** The headers for recent requests of a user, by verb, resource and namespace. */
  readonly ofUsers: WeakMap<ClassifiedRequest['user'], Map<string, Headers>>
}
type Headers = Readonly<Record<string, string>>

const indexes = new WeakMap<ClusterObjects, Known>()
/**
 * The flows of each base layer. Most logical clusters never write a FlowSchema and share the flows of their base layer.
 */
const ofBaseLayers = new WeakMap<BaseLayer, readonly Flow[]>()
const shared = new LRUCache<string, readonly Flow[]>({ max: 1000, maxSize: 16 * 1024 * 1024 })
/**
 * Limits above which no headers are sent (number of FlowSchemas, their bytes): every request is compared with all
 * rules, and all rules are read again after each change.
 */
const [mostFlowSchemas, mostBytes] = [1000, 256 * 1024]
const noHeaders: Headers = {}
/** How many requests of one user are remembered. */
const maxRequests = 64

/**
 * The headers for a request to a logical cluster. FlowSchemas are read again after one of them has changed. There are
 * no headers if the logical cluster has more than 1,000 FlowSchemas, or more than 256 KiB of them.
 */
export function flowHeaders(objects: ClusterObjects, request: ClassifiedRequest): Headers {
  const known = knownOf(objects)
  const { user, verb, resource } = request
  if (resource === undefined) return headersOf(known, objects, request)
  let requests = known.ofUsers.get(user)
  if (requests === undefined) known.ofUsers.set(user, (requests = new Map<string, Headers>()))
  const key = `${verb} ${resource.group} ${resource.resource} ${resource.subresource} ${resource.namespace}`
  let headers = requests.get(key)
  if (headers === undefined) {
    headers = headersOf(known, objects, request)
    remember(requests, key, headers, { max: maxRequests })
  }
  return headers
}

function headersOf(known: Known, objects: ClusterObjects, request: ClassifiedRequest): Headers {
  const flow = classify(known.flows, request)
  if (flow === undefined) return noHeaders
  let headers = known.headers.get(flow.name)
  if (headers === undefined) {
    headers = {
      'x-kubernetes-pf-flowschema-uid': uidOf(objects, flowKey, flow.name),
      'x-kubernetes-pf-prioritylevel-uid': uidOf(objects, levelKey, flow.priorityLevel),
    }
    known.headers.set(flow.name, headers)
  }
  return headers
}

function knownOf(objects: ClusterObjects): Known {
  const changes = [objects.changes(flowKey), objects.changes(levelKey)] as const
  let known = indexes.get(objects)
  if (known?.changes[0] !== changes[0] || known.changes[1] !== changes[1]) {
    known = { changes, flows: flowsOf(objects), headers: new Map(), ofUsers: new WeakMap() }
    indexes.set(objects, known)
  }
  return known
}

function flowsOf(objects: ClusterObjects): readonly Flow[] {
  const base = objects.unwritten(levelKey) && objects.unwritten(flowKey)
  if (base === undefined) return readFlows(objects)
  let flows = ofBaseLayers.get(base)
  if (flows === undefined) ofBaseLayers.set(base, (flows = readFlows(objects)))
  return flows
}

function readFlows(objects: ClusterObjects): readonly Flow[] {
  if (objects.count({ resource: flowKey }) > mostFlowSchemas) return []
  const entries = objects.list({ resource: flowKey })
  if (entries.reduce((sum, { size }) => sum + size, 0) > mostBytes) return []
  const flows = entries
    .map(({ key, bytes }) => flowOf(key.name, decodeObject(bytes)['spec'] as JsonObject))
    .filter(({ priorityLevel }) => objects.get(levelKey, '', priorityLevel) !== undefined)
    .sort(byPrecedence)
  const text = JSON.stringify(flows)
  const same = shared.get(text)
  if (same !== undefined) return same
  shared.set(text, flows, { size: text.length })
  return flows
}

function uidOf(objects: ClusterObjects, resource: string, name: string): string {
  const entry = objects.get(resource, '', name)
  return entry === undefined ? '' : (decodeMetadata(entry.bytes).uid ?? '')
}
