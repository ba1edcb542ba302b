// Conditions in the status of an object, for people, `kubectl wait` and GitOps tools.
import type { Condition } from '#apimachinery/meta/index.ts'
import type { JsonSchema, PrinterColumn } from './crd.ts'

export interface ConditionUpdate {
  readonly type: string
  readonly status: Condition['status']
  /** CamelCase, for programs. */
  readonly reason: string
  /** A sentence for people, which tells them what to do. */
  readonly message: string
  readonly observedGeneration?: number
}

/**
 * The conditions with this one replaced or added. `now` (RFC 3339) becomes its lastTransitionTime only if the status
 * has changed. Pure; returns the same array if nothing has changed.
 */
export function setCondition(
  conditions: readonly Readonly<Condition>[] | undefined,
  update: ConditionUpdate,
  now: string,
): readonly Readonly<Condition>[] {
  const before = conditions?.find(({ type }) => type === update.type)
  const after: Condition = {
    type: update.type,
    status: update.status,
    reason: update.reason,
    message: update.message,
    lastTransitionTime: before?.status === update.status ? before.lastTransitionTime : now,
    ...(update.observedGeneration === undefined ? {} : { observedGeneration: update.observedGeneration }),
  }
  if (before === undefined) return [...(conditions ?? []), after]
  const same =
    before.status === after.status &&
    before.reason === after.reason &&
    before.message === after.message &&
    before.observedGeneration === after.observedGeneration
  if (same && conditions) return conditions
  return (conditions ?? []).map((condition) => (condition.type === update.type ? after : condition))
}

/** The condition of this type, if the object has it. */
export function findCondition(
  object: { readonly status?: { readonly conditions?: readonly Readonly<Condition>[] } },
  type: string,
): Readonly<Condition> | undefined {
  return object.status?.conditions?.find((condition) => condition.type === type)
}

/** True if the object has this condition with status True. */
export function isConditionTrue(object: Parameters<typeof findCondition>[0], type: string): boolean {
  return findCondition(object, type)?.status === 'True'
}

/** The schema of `status.conditions`. `types` lists the expected ones in the description. */
export function conditionsSchema(types: readonly string[]): JsonSchema {
  return {
    type: 'array',
    description: `Observations of the current state of this object. Types: ${types.join(', ')}.`,
    maxItems: 32,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['type'],
    items: {
      type: 'object',
      required: ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
      properties: {
        type: { type: 'string', description: 'The type of the condition.', minLength: 1, maxLength: 316 },
        status: { type: 'string', enum: ['True', 'False', 'Unknown'] },
        reason: { type: 'string', description: 'Why, in one word for programs.', minLength: 1, maxLength: 1024 },
        message: { type: 'string', description: 'Why, in a sentence for people.', maxLength: 32768 },
        lastTransitionTime: { type: 'string', format: 'date-time', description: 'When the status last changed.' },
        observedGeneration: {
          type: 'integer',
          format: 'int64',
          minimum: 0,
          description: 'The metadata.generation that this condition is based on.',
        },
      },
    },
  }
}

/** The schema of `status.observedGeneration`. */
export const observedGenerationSchema: JsonSchema = {
  type: 'integer',
  format: 'int64',
  minimum: -1,
  description: 'The metadata.generation that this status is based on; -1 until the operator has processed the object.',
}

/**
 * The status of an object that the operator has not processed. Without it, kstatus (Flux, Helm 4) would call a new
 * object ready.
 */
export const unobservedStatus = { observedGeneration: -1 }

/** A printer column with the status of one condition. */
export function conditionColumn(name: string, type: string, { priority }: { priority?: number } = {}): PrinterColumn {
  return {
    name,
    type: 'string',
    jsonPath: `.status.conditions[?(@.type=="${type}")].status`,
    ...(priority === undefined ? {} : { priority }),
  }
}

/** A column that shows why a condition is as it is. */
export function reasonColumn(name: string, type: string, { priority }: { priority?: number } = {}): PrinterColumn {
  return {
    name,
    type: 'string',
    jsonPath: `.status.conditions[?(@.type=="${type}")].reason`,
    ...(priority === undefined ? {} : { priority }),
  }
}

/** A printer column with the age of the object. */
export const ageColumn: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }
