// The field of a workload that keeps it away from a member whose API does not know it.
import type { DeepReadonly, KubeObject } from '#apimachinery/meta/index.ts'
import { templateOf, workloadKindOfObject, type MemberCluster } from '#crds/index.ts'
import { usedField } from './used-field.ts'

type CachedObject = DeepReadonly<KubeObject>
type Fields = NonNullable<NonNullable<DeepReadonly<MemberCluster>['status']>['unsupportedFields']>

/** What was found, by workload and by list of a member: both are new objects when they change. */
const known = new WeakMap<CachedObject, WeakMap<Fields, { readonly field: string | undefined }>>()

/** The first field that the workload uses and the member does not know; empty for the kind itself; undefined if there is none. */
export function unknownField(workload: CachedObject, { status }: DeepReadonly<MemberCluster>): string | undefined {
  const fields = status?.unsupportedFields
  if (fields === undefined || fields.length === 0) return undefined
  const byFields = known.get(workload) ?? new WeakMap<Fields, { readonly field: string | undefined }>()
  known.set(workload, byFields)
  const before = byFields.get(fields)
  if (before !== undefined) return before.field
  const field = find(workload, fields)
  byFields.set(fields, { field })
  return field
}

function find(workload: CachedObject, fields: Fields): string | undefined {
  const pathsOf = (wanted: string): readonly string[] => fields.find(({ kind }) => kind === wanted)?.paths ?? []
  const own = pathsOf(workload.kind)
  if (own.includes('.')) return ''
  const template = workloadKindOfObject(workload)?.paths.template ?? []
  const found = template.length === 0 ? undefined : usedField(workload, own)
  if (found !== undefined) return found
  const inTemplate = usedField(templateOf(workload), pathsOf('Pod'))
  return inTemplate === undefined ? undefined : [...template, inTemplate].join('.')
}
