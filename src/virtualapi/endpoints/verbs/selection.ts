// Label and field selectors of a list or watch, compiled once per request.
import {
  parseFieldSelector,
  parseLabelSelector,
  requireMetadataFields,
  requireSupportedFields,
  type FieldSelector,
  type LabelSelector,
} from '#apimachinery/selector/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Entry } from '#store/watch-cache/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'

export interface Selection {
  readonly labels: LabelSelector
  readonly fields: FieldSelector
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
  if (labelText === '' && fieldText === '' && name === undefined) return everything
  const labels = parseLabelSelector(labelText)
  const fields = parseFieldSelector(fieldText)
  const { selectableFields } = strategy
  if (!fields.matchesEverything) requireFields(fields, info, Object.keys(selectableFields))
  const decodes = fields.requirements.some(({ field }) => field in selectableFields)
  const isEverything = labels.matchesEverything && fields.matchesEverything && name === undefined
  return {
    labels,
    fields,
    everything: isEverything,
    name: name ?? fields.exactly('metadata.name'),
    terms: labels.requirements.length + fields.requirements.length,
    matches(entry) {
      if (isEverything) return true
      if (name !== undefined && entry.key.name !== name) return false
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
