// Resource `members`: the members that a logical cluster may use, made from the MemberClusters in memory.
import { Buffer } from 'node:buffer'
import { encodeJson, zeroRevision, type DeepReadonly } from '#apimachinery/meta/index.ts'
import { expired, methodNotAllowed, notFound } from '#apimachinery/status/index.ts'
import { contentHash, findCondition, isOwnLabel, type Member, type MemberCluster } from '#crds/index.ts'
import { allowedMembers, applicableRules, boundsOf, whyNotUsable } from '#placement/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { jsonBytes } from '#virtualapi/codec/responses.ts'
import { listItem } from '#virtualapi/codec/list-chunks.ts'
import { viewOf } from '#virtualapi/codec/representations.ts'
import type { ApiResponse } from '#virtualapi/request/exchange.ts'
import { stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { Fleet } from '#virtualapi/write/admission/placement-rules.ts'
import type { EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import { listResponse } from '#virtualapi/endpoints/verbs/list.ts'
import { listOptionsOf } from '#virtualapi/endpoints/verbs/list-options.ts'
import { entriesOf, MembersWatch, shownMembers, type ShownMembers } from './members-watch.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import { selectionOf } from '#virtualapi/endpoints/verbs/selection.ts'
import { watchResponse, watchOptions } from '#virtualapi/endpoints/verbs/watch.ts'

/** Maximum of members that are shown, the first by name: an installation has tens of them. */
const maxShown = 1000

/**
 * Answers GET, LIST and WATCH. Throws 404 for a member that does not exist or that the logical cluster may not use, and
 * 405 for other verbs.
 */
export function memberViews(call: EndpointCall<EndpointDependencies>): ApiResponse {
  const { definition, exchange, representation, query, request, target, dependencies, cluster } = call
  if (!definition.info.verbs.includes(exchange.info.verb) || request.subresource !== '')
    throw methodNotAllowed(definition.info, exchange.request.method)
  if (exchange.info.verb === 'watch') return watchMembers(call)
  const { now } = target.context
  const view = viewOf(definition, representation, { includeObject: query.get('includeObject') ?? 'Metadata', now })
  const shown = membersOf(dependencies.fleet, cluster, now)
  if (request.name !== '') {
    const found = shown.byName.get(request.name)
    if (found === undefined) throw notFound(definition.info, request.name)
    return jsonBytes(view.object(stampRevision(found, shown.revision)))
  }
  const selection = selectionOf(query, definition)
  const found = entriesOf(shown, cluster.id).filter((entry) => selection.matches(entry))
  return listResponse(
    view,
    found.map(({ bytes }) => listItem(bytes)),
    { resourceVersion: String(shown.revision) },
  )
}

/** Throws 410 if the client's resourceVersion is not the current one: the client then lists again. */
function watchMembers(call: EndpointCall<EndpointDependencies>): ApiResponse {
  const { definition, exchange, representation, query, request, target, dependencies, cluster } = call
  const { fleet, directory } = dependencies
  const { now } = target.context
  const options = watchOptions(listOptionsOf(query, 'watch'))
  const selection = selectionOf(query, definition, request.name === '' ? {} : { name: request.name })
  const view = viewOf(definition, representation, { includeObject: query.get('includeObject') ?? 'Metadata', now })
  const known = membersOf(fleet, cluster, now)
  const isFromNow = options.sendInitialEvents || options.since === zeroRevision
  if (!isFromNow && options.since !== known.revision)
    throw expired('The members have changed since that resourceVersion: list them again.')
  const watch = new MembersWatch({
    cluster: cluster.id,
    known,
    look: () => {
      const current = directory.byId(cluster.id)
      return current && membersOf(fleet, current, dependencies.clock.now())
    },
    follow: (changed) => {
      const stops = [
        fleet?.onChange(changed),
        directory.onChange(({ before, after }) => {
          if (before?.id === cluster.id || after?.id === cluster.id) changed()
        }),
      ]
      return () => stops.forEach((stop) => stop?.())
    },
  })
  const initial = options.sendInitialEvents ? entriesOf(known, cluster.id) : undefined
  const form = { definition, selection, view }
  return watchResponse(
    { form, watch, initial, since: known.revision, leastProgress: zeroRevision, options },
    exchange,
    dependencies,
  )
}

/** The objects that the logical cluster shows now: the first maxShown by name. */
function membersOf(fleet: Fleet | undefined, cluster: LogicalCluster, now: number): ShownMembers {
  const usable = usableMembers(fleet, cluster).slice(0, maxShown)
  return shownMembers(new Map(usable.map((member) => [member.metadata.name, bytesOf(member, cluster, now)])))
}

/** The members that admit the logical cluster and that no Placement of the admins forbids in all of its namespaces. */
function usableMembers(
  fleet: Fleet | undefined,
  { labels: clusterLabels }: LogicalCluster,
): DeepReadonly<MemberCluster>[] {
  if (fleet === undefined) return []
  const ofAdmins = fleet.adminPlacements().filter(({ spec }) => Object.keys(spec?.namespaceSelector ?? {}).length === 0)
  const rules = applicableRules({ ofTenant: [], ofAdmins }, { clusterLabels, namespaceLabels: undefined })
  return allowedMembers(fleet.all(), { bounds: boundsOf([...rules.ofCluster, ...rules.global]), clusterLabels })
}

function bytesOf(member: DeepReadonly<MemberCluster>, cluster: LogicalCluster, nowMs: number): Uint8Array {
  return Buffer.from(encodeJson(viewOfMember(member, cluster, nowMs)))
}

function viewOfMember(
  member: DeepReadonly<MemberCluster>,
  { id, labels: clusterLabels }: LogicalCluster,
  nowMs: number,
): Member {
  const { metadata, spec, status } = member
  const { name, uid = '', creationTimestamp } = metadata
  const shownLabels = publicLabels(metadata.labels)
  return {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'Member',
    metadata: {
      name,
      // The uid differs in each logical cluster: uids of the admins' objects are not for tenants.
      uid: contentHash([id, name, uid]),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
      ...(Object.keys(shownLabels).length > 0 && { labels: shownLabels }),
    },
    status: {
      ...(status?.version !== undefined && { version: status.version }),
      serviceNetwork: spec?.serviceNetwork?.type ?? 'None',
      taints: spec?.taints ?? [],
      classes: (status?.classes ?? []).map(({ kind, items }) => ({ kind, names: items.map((one) => one.name) })),
      conditions: conditionsOf(member, { clusterLabels, nowMs }),
    },
  }
}

function conditionsOf(
  member: DeepReadonly<MemberCluster>,
  context: Parameters<typeof whyNotUsable>[1],
): Member['status']['conditions'] {
  const ready = findCondition(member, 'Ready')
  const why = whyNotUsable(member, context)
  const lastTransitionTime =
    ready?.lastTransitionTime ?? member.metadata.creationTimestamp ?? new Date(context.nowMs).toISOString()
  // The message of Ready is left out: it may contain addresses of the member, which are for admins.
  const isReady = { type: 'Ready', status: ready?.status ?? 'Unknown', reason: ready?.reason ?? 'Unknown', message: '' }
  const usable =
    why === undefined
      ? { type: 'Usable', status: 'True', reason: 'TakesWorkloads', message: 'it takes new workloads' }
      : { type: 'Usable', status: 'False', ...why }
  return [isReady, usable].map((condition) => ({ ...condition, lastTransitionTime })) as Member['status']['conditions']
}

/** The labels of a MemberCluster that Placements of tenants may select: all but the labels that kcp sets. */
function publicLabels(labels: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).filter(([name]) => !isOwnLabel(name)))
}
