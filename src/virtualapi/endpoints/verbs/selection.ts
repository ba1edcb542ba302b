// Label and field selectors of a list or watch, compiled once per request.
import {
  parseFieldSelector,
  parseLabelSelector,
  requireMetadataFields,
  requireSupportedFields,
  type FieldSelector,
  type LabelSelector,
} from '#apimachinery/selector/index.ts'
import { parseShardSelector, type ShardSelector } from '#apimachinery/sharding/index.ts'
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import type { Exchange } from '#virtualapi/request/exchange.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { ResourceTarget } from '#virtualapi/request/request-info.ts'
import type { ViewedObject } from '#virtualapi/request/request-view.ts'
import type { Entry } from '#store/watch-cache/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'

export interface Selection {
  readonly labels: LabelSelector
  readonly fields: FieldSelector
  /** undefined: of all shards. */
  readonly shard: ShardSelector | undefined
  /** True if every entry matches. */
  readonly everything: boolean
  /** The only name that can match, from the field selector or the path; undefined: any. */
  readonly name: string | undefined
  /** Maximum of comparisons that one match needs. */
  readonly terms: number
  matches(entry: Entry): boolean
}

/** Shared by all requests without selectors. */
const everything: Selection = {
  labels: parseLabelSelector(''),
  fields: parseFieldSelector(''),
  shard: undefined,
  everything: true,
  name: undefined,
  terms: 0,
  matches: () => true,
}

/**
 * Throws 400 for fields that the kind cannot select. As in kube-apiserver, cluster-scoped built-in kinds accept
 * metadata.namespace.
 */
function requireFields(fields: FieldSelector, { builtIn, namespaced }: ResourceInfo, own: readonly string[]): void {
  if (builtIn && own.length === 0) requireMetadataFields(fields)
  else requireSupportedFields(fields, new Set(['metadata.name', ...(namespaced ? ['metadata.namespace'] : []), ...own]))
}

/** Compiles the selectors of a request. `name`: only this object, from the path. Throws 400 for unsupported fields. */
export function selectionOf(
  query: URLSearchParams,
  { info, strategy }: ResourceDefinition,
  { name }: { name?: string } = {},
): Selection {
  const labelText = query.get('labelSelector') ?? ''
  const fieldText = query.get('fieldSelector') ?? ''
  const shardText = query.get('shardSelector') ?? ''
  if (labelText === '' && fieldText === '' && shardText === '' && name === undefined) return everything
  const labels = parseLabelSelector(labelText)
  const fields = parseFieldSelector(fieldText)
  const shard = shardText === '' ? undefined : parseShardSelector(shardText)
  const { selectableFields } = strategy
  if (!fields.matchesEverything) requireFields(fields, info, Object.keys(selectableFields))
  const decodes = fields.requirements.some(({ field }) => field in selectableFields)
  const selectsAll = labels.matchesEverything && fields.matchesEverything
  const isEverything = selectsAll && shard === undefined && name === undefined
  return {
    labels,
    fields,
    shard,
    everything: isEverything,
    name: name ?? fields.exactly('metadata.name'),
    terms: labels.requirements.length + fields.requirements.length + (shard?.ranges ?? 0),
    matches(entry) {
      if (isEverything) return true
      if (name !== undefined && entry.key.name !== name) return false
      if (shard !== undefined && !shard.matches(shardValue(shard, entry))) return false
      if (!labels.matchesEverything && !labels.matches(entry.facts.labels)) return false
      if (fields.matchesEverything) return true
      const object: KubeObject | undefined = decodes ? decodeObject(entry.bytes) : undefined
      return fields.matches((field) => {
        if (field === 'metadata.name') return entry.key.name
        if (field === 'metadata.namespace') return entry.key.namespace
        return object === undefined ? '' : selectableFields[field]?.(object)
      })
    },
  }
}

/** The selection without the objects that the view of the request hides. */
export function shownSelection(
  selection: Selection,
  {
    exchange: { view },
    cluster,
    request,
  }: { exchange: Pick<Exchange, 'view'>; cluster: LogicalCluster; request: ResourceTarget },
): Selection {
  const matches = view?.ruleFor(cluster.id, request)?.matches
  if (view === undefined || matches === undefined) return selection
  return { ...selection, everything: false, matches: (entry) => matches(viewed(entry)) && selection.matches(entry) }
}

/** The entry as the rules of views look at it. */
export function viewed({ key: { namespace, name }, facts, bytes }: Entry): ViewedObject {
  return { namespace, name, labels: facts.labels, object: () => decodeObject(bytes) as unknown as JsonObject }
}

/** The value of the field by which objects are divided among shards. */
function shardValue({ field }: ShardSelector, { key, facts }: Entry): string {
  if (field === 'uid') return facts.uid
  return field === 'namespace' ? key.namespace : key.cluster
}

/** ListMeta of a list that is a part of the collection: echoes the selector, so that clients know that it was applied. */
export function shardInfoOf({ shard }: Selection): { readonly shardInfo?: { readonly selector: string } } {
  return shard === undefined ? {} : { shardInfo: { selector: shard.text } }
}
