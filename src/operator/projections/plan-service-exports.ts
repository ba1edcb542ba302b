// The objects that a ServiceExport needs: a ServiceImport, a second Service, and conditions that say so. Pure.
import { jsonEqual } from '#apimachinery/json/index.ts'
import { cloneJson, type Condition, type JsonValue, type KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  clusterSetApiVersion,
  clusterSetServiceName,
  exportedServiceLabel,
  maxExportedNameLength,
  memberAnnotation,
  memberStatusesOf,
  setCondition,
  type ConditionUpdate,
  type ServiceMemberStatus,
} from '#crds/index.ts'

type CachedObject = DeepReadonly<KubeObject>

/** Annotation of a ServiceImport: the addresses of the name by member, JSON. Each member gives its own. */
export const addressesAnnotation = 'kcp.dev/clusterset-ips'

export type Part = 'export' | 'import' | 'service'
export type Step =
  | { readonly do: 'create' | 'update'; readonly part: Part; readonly object: KubeObject }
  | { readonly do: 'updateStatus'; readonly part: Part; readonly object: KubeObject }
  /** The second Service or the ServiceImport, of this uid. */
  | { readonly do: 'delete'; readonly part: Part; readonly name: string; readonly uid: string }

export interface Seen {
  readonly export: CachedObject | undefined
  readonly import: CachedObject | undefined
  /** The exported Service. */
  readonly service: CachedObject | undefined
  /** The Service that has the name of the second Service, whoever made it. */
  readonly derived: CachedObject | undefined
  /** The EndpointSlices of the exported Service. */
  readonly slices: readonly CachedObject[]
}

/** The steps for the ServiceExport of this name, in order. `now`: RFC 3339. */
export function planExport(name: string, seen: Seen, now: string): Step[] {
  const { export: exported } = seen
  if (exported === undefined || exported.metadata.deletionTimestamp !== undefined) return withdraw(name, seen)
  const problem = problemOf(name, seen)
  if (problem !== undefined)
    return [
      ...withdraw(name, seen),
      ...tell(exported, [{ ...valid, ...problem.valid }, noConflict, { ...pending, ...problem.ready }], now),
    ]
  const steps = [...planImport(name, seen), ...planService(name, seen), ...planClusters(seen)]
  const isThere = isMadeFor(seen.import, 'ServiceExport', name) && isMadeFor(seen.derived, 'ServiceImport', name)
  const wasRefused = conditionsOf(exported).find(({ type, reason }) => type === 'Ready' && reason === 'Failed')
  const readiness = isThere ? [ready] : wasRefused === undefined ? [pending] : []
  return [...steps, ...tell(exported, [valid, noConflict, ...readiness], now)]
}

/** The step that says why the server refused a part. */
export function planRefusal(exported: CachedObject, message: string, now: string): Step[] {
  return tell(exported, [{ ...pending, reason: 'Failed', message }], now)
}

const valid: ConditionUpdate = {
  type: 'Valid',
  status: 'True',
  reason: 'Valid',
  message: 'The Service can be exported',
}
/** There is never a conflict: a logical cluster has one Service of a name, whatever members its pods are in. */
const noConflict: ConditionUpdate = {
  type: 'Conflict',
  status: 'False',
  reason: 'NoConflicts',
  message: 'One Service is exported by this name',
}
const ready: ConditionUpdate = {
  type: 'Ready',
  status: 'True',
  reason: 'Exported',
  message: 'The Service is exported to the members of the logical cluster',
}
const pending: ConditionUpdate = { type: 'Ready', status: 'False', reason: 'Pending', message: 'Not exported yet' }

interface Problem {
  readonly valid?: Partial<ConditionUpdate>
  readonly ready: Partial<ConditionUpdate>
}

function problemOf(name: string, { service, derived }: Seen): Problem | undefined {
  const invalid = (reason: string, message: string): Problem => ({
    valid: { status: 'False', reason, message },
    ready: { message: 'The Service cannot be exported' },
  })
  const failed = (message: string): Problem => ({ ready: { reason: 'Failed', message } })
  if (service === undefined || service.metadata.deletionTimestamp !== undefined)
    return invalid('NoService', `There is no Service "${name}"`)
  if ((service['spec'] as ServiceSpec | undefined)?.type === 'ExternalName')
    return invalid('InvalidServiceType', 'A Service of type ExternalName cannot be exported')
  if (name.length > maxExportedNameLength)
    return failed(`The name of an exported Service has at most ${maxExportedNameLength} characters`)
  if (derived !== undefined && !isMadeFor(derived, 'ServiceImport', name))
    return failed(`Another Service has the name "${clusterSetServiceName(name)}", which the export needs`)
  return undefined
}

/** Deletes the objects that were made for an export. Objects of the same names that others made stay. */
function withdraw(name: string, { import: imported, derived }: Seen): Step[] {
  const steps: Step[] = []
  if (isMadeFor(derived, 'ServiceImport', name)) steps.push(deletion('service', derived))
  if (isMadeFor(imported, 'ServiceExport', name)) steps.push(deletion('import', imported))
  return steps
}

function deletion(part: Part, { metadata: { name = '', uid = '' } }: CachedObject): Step {
  return { do: 'delete', part, name, uid }
}

function isMadeFor(object: CachedObject | undefined, kind: string, name: string): object is CachedObject {
  const owners = object?.metadata.ownerReferences ?? []
  return owners.some((owner) => owner.controller === true && owner.kind === kind && owner.name === name)
}

interface ServiceSpec {
  readonly type?: string
  readonly clusterIP?: string
  readonly ports?: readonly Readonly<Record<string, JsonValue>>[]
  readonly ipFamilies?: readonly string[]
  readonly [field: string]: unknown
}

/** Fields of a Service that mean the same in its ServiceImport. */
const importedFields = [
  'sessionAffinity',
  'sessionAffinityConfig',
  'internalTrafficPolicy',
  'trafficDistribution',
] as const
/** Fields of a Service that the second one has, too. */
const derivedFields = [
  ...importedFields,
  'selector',
  'publishNotReadyAddresses',
  'ipFamilyPolicy',
  'ipFamilies',
] as const

function pick(from: object, fields: readonly string[]): Record<string, JsonValue> {
  const values = cloneJson(from) as Record<string, JsonValue>
  return Object.fromEntries(fields.flatMap((field) => (field in values ? [[field, values[field] as JsonValue]] : [])))
}

function planImport(name: string, { export: exported, import: current, service, derived }: Seen): Step[] {
  if (exported === undefined || service === undefined) return []
  const spec = (service['spec'] ?? {}) as ServiceSpec
  const isHeadless = spec.clusterIP === 'None'
  const byMember = isHeadless ? {} : addressesByMember(derived)
  const [ips = []] = Object.values(byMember)
  const { exportedLabels, exportedAnnotations } = (exported['spec'] ?? {}) as {
    exportedLabels?: Readonly<Record<string, string>>
    exportedAnnotations?: Readonly<Record<string, string>>
  }
  const shown = Object.keys(byMember).length === 0 ? {} : { [addressesAnnotation]: JSON.stringify(byMember) }
  const {
    labels: _labels,
    annotations: _annotations,
    ...kept
  } = cloneJson(current?.metadata ?? { name }) as object & {
    labels?: unknown
    annotations?: unknown
  }
  const namespace = exported.metadata.namespace ?? ''
  const object: KubeObject = {
    ...(current && (cloneJson(current) as KubeObject)),
    apiVersion: clusterSetApiVersion,
    kind: 'ServiceImport',
    metadata: {
      ...kept,
      namespace,
      labels: { ...exportedLabels },
      annotations: { ...exportedAnnotations, ...shown },
      ownerReferences: [ownerReference(exported, 'ServiceExport')],
    },
    spec: {
      type: isHeadless ? 'Headless' : 'ClusterSetIP',
      ports: (spec.ports ?? []).map((port) => pick(port, ['name', 'protocol', 'port', 'appProtocol'])),
      ...pick(spec, importedFields),
      ...(ips.length > 0 && { ips: [...ips] }),
      ipFamilies: ips.length > 0 ? ips.map(familyOf) : [...(spec.ipFamilies ?? [])],
    },
  }
  if (current === undefined) return [{ do: 'create', part: 'import', object }]
  const facts = ({ metadata, ...rest }: CachedObject): unknown => [
    metadata.labels ?? {},
    metadata.annotations ?? {},
    metadata.ownerReferences ?? [],
    rest['spec'],
  ]
  return jsonEqual(facts(current), facts(object)) ? [] : [{ do: 'update', part: 'import', object }]
}

/** The addresses of the second Service in each member that has it, by the names of the members in order. */
function addressesByMember(derived: CachedObject | undefined): Record<string, readonly string[]> {
  if (derived === undefined) return {}
  const reports = Object.entries(memberStatusesOf<ServiceMemberStatus>(derived as KubeObject))
  return Object.fromEntries(
    reports
      .flatMap(([member, { addresses = [] }]) => (addresses.length > 0 ? [[member, addresses] as const] : []))
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  )
}

function familyOf(address: string): string {
  return address.includes(':') ? 'IPv6' : 'IPv4'
}

function ownerReference(
  { metadata }: CachedObject,
  kind: string,
): NonNullable<KubeObject['metadata']['ownerReferences']>[0] {
  const { name = '', uid = '' } = metadata
  return { apiVersion: clusterSetApiVersion, kind, name, uid, controller: true }
}

/**
 * The second Service: it selects the same pods and exists as long as the export does. Members treat it like any other
 * Service, so moves wait until its endpoints are known, too.
 */
function planService(name: string, { import: imported, service, derived }: Seen): Step[] {
  if (service === undefined || !isMadeFor(imported, 'ServiceExport', name)) return []
  const from = (service['spec'] ?? {}) as ServiceSpec
  const isHeadless = from.clusterIP === 'None'
  const current = (derived?.['spec'] ?? {}) as ServiceSpec
  // A headless Service cannot become another kind of Service. The next reconcile creates it again.
  if (derived !== undefined && (current.clusterIP === 'None') !== isHeadless) return [deletion('service', derived)]
  const { clusterIP, clusterIPs } = current as { clusterIP?: string; clusterIPs?: string[] }
  const object: KubeObject = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      ...((derived && (cloneJson(derived.metadata) as KubeObject['metadata'])) ?? {
        name: clusterSetServiceName(name),
      }),
      namespace: service.metadata.namespace ?? '',
      labels: { [exportedServiceLabel]: name },
      ownerReferences: [ownerReference(imported, 'ServiceImport')],
    },
    spec: {
      type: 'ClusterIP',
      ...(isHeadless ? { clusterIP: 'None' } : { ...(clusterIP && { clusterIP }), ...(clusterIPs && { clusterIPs }) }),
      ...pick(from, derivedFields),
      ports: (from.ports ?? []).map((port) => pick(port, ['name', 'protocol', 'port', 'targetPort', 'appProtocol'])),
    },
  }
  if (derived === undefined) return [{ do: 'create', part: 'service', object }]
  const facts = ({ metadata, ...rest }: CachedObject): unknown => [
    metadata.labels ?? {},
    metadata.ownerReferences ?? [],
    pick(rest['spec'] as object, [...derivedFields, 'type', 'ports']),
  ]
  return jsonEqual(facts(derived), facts(object)) ? [] : [{ do: 'update', part: 'service', object }]
}

/** The members with ready endpoints of the exported Service, in the status of the ServiceImport. */
function planClusters({ import: imported, slices }: Seen): Step[] {
  if (imported === undefined) return []
  const clusters = membersWithEndpoints(slices).map((cluster) => ({ cluster }))
  const status = (imported['status'] ?? {}) as { readonly clusters?: readonly unknown[] }
  if (jsonEqual(status.clusters ?? [], clusters)) return []
  const next = { ...(cloneJson(status) as object), clusters }
  const object = { ...inServedVersion(imported), status: next }
  return [{ do: 'updateStatus', part: 'import', object }]
}

function membersWithEndpoints(slices: readonly CachedObject[]): string[] {
  const members = new Set<string>()
  for (const slice of slices) {
    const member = slice.metadata.annotations?.[memberAnnotation]
    const endpoints = (slice['endpoints'] ?? []) as readonly { readonly conditions?: { readonly ready?: boolean } }[]
    if (member !== undefined && endpoints.some(({ conditions }) => conditions?.ready !== false)) members.add(member)
  }
  return [...members].sort()
}

/**
 * Lists over all logical clusters show custom objects in the version that is stored, which is v1beta1 in newer
 * releases.
 */
function inServedVersion(object: CachedObject): KubeObject {
  return { ...(cloneJson(object) as KubeObject), apiVersion: clusterSetApiVersion }
}

function conditionsOf(exported: CachedObject): readonly Readonly<Condition>[] {
  return ((exported['status'] ?? {}) as { conditions?: readonly Readonly<Condition>[] }).conditions ?? []
}

function tell(exported: CachedObject, updates: readonly ConditionUpdate[], now: string): Step[] {
  const before = conditionsOf(exported)
  const { generation } = exported.metadata
  let conditions = before
  for (const update of updates)
    conditions = setCondition(
      conditions,
      { ...update, ...(generation !== undefined && { observedGeneration: generation }) },
      now,
    )
  if (conditions === before) return []
  const object = inServedVersion(exported)
  const status = { ...(object['status'] as object | undefined), conditions: [...conditions] }
  return [{ do: 'updateStatus', part: 'export', object: { ...object, status } }]
}
