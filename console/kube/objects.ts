// Objects as the pages read them: every field may be absent, because a custom resource may have any shape.

export interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
  readonly lastUpdateTime?: string
}

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
}

export interface Metadata {
  readonly name: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly OwnerReference[]
}

export interface AnyObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: Metadata
  readonly spec?: Readonly<Record<string, unknown>>
  readonly status?: Readonly<Record<string, unknown>>
  readonly [field: string]: unknown
}

/** The conditions of an object; none if its status has another shape. */
export function conditionsOf(object: AnyObject): readonly Condition[] {
  const conditions = object.status?.['conditions']
  if (!Array.isArray(conditions)) return []
  return conditions.filter((one): one is Condition => isRecord(one) && typeof one['type'] === 'string')
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function recordsOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

export function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
