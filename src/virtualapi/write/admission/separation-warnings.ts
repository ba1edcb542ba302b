// Warns a tenant whose target separates workloads from other workloads of their namespace. Between members whose pod
// networks are not connected, a Service reaches only pods in the same member. Only writes that change a target read the
// other workloads.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { serviceSelects } from '#apimachinery/selector/index.ts'
import {
  areJoined,
  clustersAnnotation,
  isPlaceable,
  membersWithCopy,
  templateOf,
  workloadKinds,
  type ServiceNetwork,
} from '#crds/index.ts'
import { parseTarget } from '#placement/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import { storageKeyOf } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { AdmissionPlugin, AdmissionRequest } from './admission.ts'
import { isTenantsWrite, isWorkload, type Fleet } from './placement-rules.ts'

/** The most names in a list of a warning. */
const maxNames = 5

/** For a changed annotation `kcp.dev/clusters`: names the workloads and Services that it separates from each other. */
export function separationWarnings(fleet: () => Fleet | undefined): AdmissionPlugin {
  return {
    name: 'SeparationWarnings',
    validate(request, object, old) {
      const text = object?.metadata.annotations?.[clustersAnnotation]
      if (object === undefined || text === undefined || text === old?.metadata.annotations?.[clustersAnnotation]) return
      if (!isTenantsWrite(request)) return
      const moved = movedBy(request, object)
      const warning = moved && warningFor(request, moved, { text, fleet: fleet() })
      if (warning !== undefined) request.context.warnings.push(warning)
    },
  }
}

/** The workloads that a target moves, and the other workloads of the namespace. */
interface Moved {
  readonly namespace: string
  readonly workloads: readonly KubeObject[]
  readonly others: readonly Other[]
  readonly advice: string
}

function movedBy(request: AdmissionRequest, object: KubeObject): Moved | undefined {
  const { definition, namespace, name } = request
  if (definition.storageKey === 'namespaces') {
    const all = othersIn(request, object.metadata.name ?? '')
    const hasOwn = ({ metadata }: KubeObject): boolean => metadata.annotations?.[clustersAnnotation] !== undefined
    const advice = 'these have a target of their own'
    return {
      namespace: object.metadata.name ?? '',
      advice,
      workloads: all.map(({ workload }) => workload).filter((workload) => !hasOwn(workload)),
      others: all.filter(({ workload }) => hasOwn(workload)),
    }
  }
  if (!isWorkload(request) || !isPlaceable(object)) return undefined
  const advice = `to move all workloads together, annotate the namespace "${namespace}" instead`
  const others = othersIn(request, namespace, { resource: definition.storageKey, name })
  return { namespace, workloads: [object], others, advice }
}

function warningFor(
  request: AdmissionRequest,
  { namespace, workloads, others: all, advice }: Moved,
  { text, fleet }: { readonly text: string; readonly fleet: Fleet | undefined },
): string | undefined {
  const target = parseTarget(text)
  if (fleet === undefined || target.kind !== 'members' || workloads.length === 0) return undefined
  const networks = new Map(fleet.all().map((member) => [member.metadata.name, networkOf(member)]))
  const own = target.names.filter((name) => networks.has(name))
  const others = separated(all, own, networks)
  if (own.length === 0 || others.length === 0) return undefined
  const services = servicesOf(
    request,
    namespace,
    [...workloads, ...others.map(({ workload }) => workload)].map(labelsOf),
  )
  const elsewhere = [...new Set(others.flatMap(({ members }) => members))]
  const listed = others.map(({ workload }) => `${workload.kind} "${workload.metadata.name ?? ''}"`)
  return [
    `${clustersAnnotation}: pods in ${quoted(own)} and pods of ${some(listed)} in ${quoted(elsewhere)} will not reach each other, `,
    'because the pod networks of these member clusters are not connected',
    services.length > 0 ? `; it concerns ${services.length > 1 ? 'Services' : 'Service'} ${quoted(services)}` : '',
    `; ${advice}`,
  ].join('')
}

function networkOf({ spec }: ReturnType<Fleet['all']>[number]): ServiceNetwork {
  return spec?.serviceNetwork?.type ?? 'None'
}

interface Other {
  readonly workload: KubeObject
  /** The members in which the workload runs or, before it is placed, the members of its target. */
  readonly members: readonly string[]
}

/**
 * The workloads whose pods in some member cannot reach any pod of the moved workloads, or cannot be reached from a
 * member of these.
 */
function separated(
  others: readonly Other[],
  own: readonly string[],
  networks: ReadonlyMap<string, ServiceNetwork>,
): Other[] {
  const reaches = (from: string, to: readonly string[]): boolean =>
    to.some((member) => member === from || areJoined(networks.get(from), networks.get(member)))
  return others.filter(
    ({ members }) =>
      members.length > 0 &&
      (!own.every((member) => reaches(member, members)) || !members.every((member) => reaches(member, own))),
  )
}

/** The workloads of a namespace, without `except`. */
function othersIn(
  { context }: AdmissionRequest,
  namespace: string,
  except?: { readonly resource: string; readonly name: string },
): Other[] {
  const found: Other[] = []
  for (const { gvr } of workloadKinds) {
    const resource = storageKeyOf(gvr)
    for (const { key, size, bytes } of context.objects.list({ resource, namespace })) {
      if (resource === except?.resource && key.name === except.name) continue
      if (!context.work.trySpendBytes(size)) return found
      const workload = decodeObject(bytes)
      if (!isPlaceable(workload)) continue
      const placed = membersWithCopy(workload)
      const text = workload.metadata.annotations?.[clustersAnnotation]
      const wanted = text === undefined ? undefined : parseTarget(text)
      found.push({ workload, members: placed.length > 0 || wanted?.kind !== 'members' ? placed : wanted.names })
    }
  }
  return found
}

function labelsOf(workload: KubeObject): Readonly<Record<string, string>> {
  const { metadata } = (templateOf(workload) ?? {}) as { metadata?: { labels?: Readonly<Record<string, string>> } }
  return metadata?.labels ?? {}
}

/** The Services that select pods with one of these sets of labels. */
function servicesOf(
  { context }: AdmissionRequest,
  namespace: string,
  pods: readonly Readonly<Record<string, string>>[],
): string[] {
  const names: string[] = []
  for (const { key, size, bytes } of context.objects.list({ resource: 'services', namespace })) {
    if (!context.work.trySpendBytes(size)) return names
    const service = decodeObject(bytes)
    if (pods.some((labels) => serviceSelects(service, labels))) names.push(key.name)
  }
  return names
}

function quoted(names: readonly string[]): string {
  return some(names.map((name) => `"${name}"`))
}

function some(texts: readonly string[]): string {
  const more = texts.length - maxNames
  return more > 0 ? `${texts.slice(0, maxNames).join(', ')} and ${more} more` : texts.join(', ')
}
