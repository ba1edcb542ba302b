// The APIServices of a logical cluster whose group version another server serves.
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import type { BaseLayer, ClusterObjects, Entry } from '#store/watch-cache/index.ts'
import type { Priorities } from '#virtualapi/discovery/merge-groups.ts'
import type { ServiceReference } from '#virtualapi/outbound/calls/service-resolver.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'

/** The resource of APIServices as in store keys. */
export const apiServiceKey = 'apiservices.apiregistration.k8s.io'

export interface ApiService extends Priorities {
  readonly name: string
  readonly group: string
  readonly version: string
  /** The server of the group version; undefined if the logical cluster serves it itself. */
  readonly remote: RemoteServer | undefined
  /** True if the condition Available has been written. */
  readonly isJudged: boolean
}

export interface RemoteServer {
  readonly service: Omit<ServiceReference, 'path'>
  /** PEM. */
  readonly caBundle: string | undefined
  readonly insecure: boolean
}

export type RemoteApiService = ApiService & { readonly remote: RemoteServer }

interface Read {
  readonly changes: number
  readonly all: readonly ApiService[]
  readonly remote: ReadonlyMap<string, RemoteApiService>
}

/** The most APIServices that are read, and their most bytes, because all are listed again after each change. */
const [mostApiServices, mostBytes] = [1000, 4 * 1024 * 1024]

const parsed = new WeakMap<Entry, ApiService>()
const lists = new WeakMap<ClusterObjects, Read>()
/** What all logical clusters have that have written no APIService: nearly all of them. */
const unwritten = new WeakMap<BaseLayer, Read>()

/**
 * All APIServices of a logical cluster, parsed. Empty if there are more than 1,000 of them, or if they take more than 4
 * MiB.
 */
export function apiServices(objects: ClusterObjects): readonly ApiService[] {
  return read(objects).all
}

/** The APIServices that lead to another server, by name (`VERSION.GROUP`). */
export function remoteApiServices(objects: ClusterObjects): ReadonlyMap<string, RemoteApiService> {
  return read(objects).remote
}

function read(objects: ClusterObjects): Read {
  const base = objects.unwritten(apiServiceKey)
  const shared = base && unwritten.get(base)
  if (shared !== undefined) return shared
  const changes = objects.changes(apiServiceKey)
  const known = lists.get(objects)
  if (known?.changes === changes) return known
  const all = entriesOf(objects).map(parse)
  const remote = new Map(all.filter(isRemote).map((one) => [one.name, one]))
  const result: Read = { changes, all, remote }
  if (base === undefined) lists.set(objects, result)
  else unwritten.set(base, result)
  return result
}

function entriesOf(objects: ClusterObjects): readonly Entry[] {
  if (objects.count({ resource: apiServiceKey }) > mostApiServices) return []
  const entries = objects.list({ resource: apiServiceKey })
  return entries.reduce((sum, { size }) => sum + size, 0) > mostBytes ? [] : entries
}

function isRemote(one: ApiService): one is RemoteApiService {
  return one.remote !== undefined
}

function parse(entry: Entry): ApiService {
  let one = parsed.get(entry)
  if (one === undefined) parsed.set(entry, (one = apiServiceOf(decodeObject(entry.bytes))))
  return one
}

interface Spec {
  readonly group?: string
  readonly version?: string
  readonly groupPriorityMinimum?: number
  readonly versionPriority?: number
  readonly caBundle?: string
  readonly insecureSkipTLSVerify?: boolean
  readonly service?: { readonly namespace?: string; readonly name?: string; readonly port?: number }
}

function apiServiceOf({ metadata, spec: stored, status }: KubeObject): ApiService {
  const spec = (isJsonObject(stored) ? stored : {}) as Spec
  const conditions = isJsonObject(status) ? status['conditions'] : undefined
  const { group = '', version = '', service, caBundle, insecureSkipTLSVerify: insecure = false } = spec
  return {
    name: metadata.name ?? '',
    group,
    version,
    groupPriority: spec.groupPriorityMinimum ?? 0,
    versionPriority: spec.versionPriority ?? 0,
    isJudged: Array.isArray(conditions) && conditions.some((one) => isJsonObject(one) && one['type'] === 'Available'),
    remote:
      service === undefined
        ? undefined
        : {
            service: { namespace: service.namespace ?? '', name: service.name ?? '', port: service.port ?? 443 },
            caBundle: caBundle === undefined ? undefined : Buffer.from(caBundle, 'base64').toString(),
            insecure,
          },
  }
}
