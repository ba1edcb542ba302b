// The facts of a candidate that its MemberCluster states: labels, limits, classes, and fields of the workload that it
// does not know. Pure.
import { type DeepReadonly, isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { amountsOf, type Amounts } from '#apimachinery/quantity/index.ts'
import { isConditionTrue, matches, type MemberCluster, templateOf, workloadKindOfObject } from '#crds/index.ts'
import type { Candidate } from './candidate.ts'
import { classNamesOf } from './classes.ts'

/** `clusterLabels`: those of the LogicalCluster. Without a workload, no field is unknown. */
export function memberFacts(
  member: DeepReadonly<MemberCluster>,
  {
    clusterLabels,
    workload,
  }: {
    readonly clusterLabels: Readonly<Record<string, string>> | undefined
    readonly workload?: DeepReadonly<KubeObject>
  },
): Omit<Candidate, 'state' | 'load'> {
  const limits = limitsOf(member)
  const field = workload === undefined ? undefined : unknownField(workload, member)
  return {
    name: member.metadata.name,
    labels: member.metadata.labels ?? {},
    ready: isConditionTrue(member, 'Ready'),
    admits: matches(member.spec?.logicalClusterSelector, clusterLabels),
    taints: member.spec?.taints ?? [],
    classes: classNamesOf(member),
    isBounded: member.spec?.capacity?.limits !== undefined,
    ...(field !== undefined && { unknownField: field }),
    ...(limits && { limits }),
  }
}

/** By MemberCluster, which is a new object when it changes: every decision asks for the limits of all members. */
const knownLimits = new WeakMap<DeepReadonly<MemberCluster>, { readonly limits: Amounts | undefined }>()

/**
 * Limits of all requests in a member: `spec.capacity.limits`, else the allocatable amounts of its nodes, less the
 * reserve. Undefined where neither is known, or where it has no nodes yet. Computed once: `member` must not change.
 */
export function limitsOf(member: DeepReadonly<MemberCluster>): Amounts | undefined {
  const before = knownLimits.get(member)
  if (before !== undefined) return before.limits
  const limits = computeLimits(member)
  knownLimits.set(member, { limits })
  return limits
}

function computeLimits({ spec, status }: DeepReadonly<MemberCluster>): Amounts | undefined {
  const { limits, reservePercent = 0 } = spec?.capacity ?? {}
  const list = limits ?? status?.allocatable
  if (list === undefined || Object.keys(list).length === 0) return undefined
  const part = BigInt(100 - reservePercent)
  return new Map(
    [...amountsOf(list)].map(([name, { nanos, format }]) => [name, { nanos: (nanos * part) / 100n, format }]),
  )
}

type CachedObject = DeepReadonly<KubeObject>
type Fields = NonNullable<NonNullable<DeepReadonly<MemberCluster>['status']>['unsupportedFields']>

/** The field that was found, by workload and by list of a member: both are new objects when they change. */
const knownFields = new WeakMap<CachedObject, WeakMap<Fields, { readonly field: string | undefined }>>()

/**
 * The first field that the workload uses and the member does not know; empty for the kind itself; undefined if there is
 * none.
 */
export function unknownField(workload: CachedObject, { status }: DeepReadonly<MemberCluster>): string | undefined {
  const fields = status?.unsupportedFields
  if (fields === undefined || fields.length === 0) return undefined
  const byFields = knownFields.get(workload) ?? new WeakMap<Fields, { readonly field: string | undefined }>()
  knownFields.set(workload, byFields)
  const before = byFields.get(fields)
  if (before !== undefined) return before.field
  const field = findField(workload, fields)
  byFields.set(fields, { field })
  return field
}

function findField(workload: CachedObject, fields: Fields): string | undefined {
  const pathsOf = (wanted: string): readonly string[] => fields.find(({ kind }) => kind === wanted)?.paths ?? []
  const own = pathsOf(workload.kind)
  if (own.includes('.')) return ''
  const template = workloadKindOfObject(workload)?.paths.template ?? []
  const found = template.length === 0 ? undefined : usedField(workload, own)
  if (found !== undefined) return found
  const inTemplate = usedField(templateOf(workload), pathsOf('Pod'))
  return inTemplate === undefined ? undefined : [...template, inTemplate].join('.')
}

/**
 * The first field in the object that one of the patterns names, such as `spec.containers[0].restartPolicyRules` for the
 * pattern `spec.containers[*].restartPolicyRules`; `{*}` stands for any key of a map. Undefined if the object uses
 * none.
 */
export function usedField(object: unknown, patterns: readonly string[]): string | undefined {
  for (const pattern of patterns) {
    const found = find(object, stepsOf(pattern))
    if (found !== undefined) return found.slice(1)
  }
  return undefined
}

function stepsOf(pattern: string): string[] {
  return pattern.split(/\.|(?=\[)|(?=\{)/).filter((step) => step !== '')
}

/** The path with a separator before it. */
function find(value: unknown, [step, ...rest]: readonly string[]): string | undefined {
  if (step === undefined) return value === undefined || value === null ? undefined : ''
  if (step === '[*]') {
    const items: unknown[] = Array.isArray(value) ? value : []
    return firstOf(items.entries(), rest, (index) => `[${index}]`)
  }
  if (!isJsonObject(value)) return undefined
  if (step === '{*}') return firstOf(Object.entries(value), rest, (key) => `[${key}]`)
  const found = find(value[step], rest)
  return found === undefined ? undefined : `.${step}${found}`
}

function firstOf<K>(
  entries: Iterable<[K, unknown]>,
  rest: readonly string[],
  textOf: (key: K) => string,
): string | undefined {
  for (const [key, one] of entries) {
    const found = find(one, rest)
    if (found !== undefined) return `${textOf(key)}${found}`
  }
  return undefined
}
