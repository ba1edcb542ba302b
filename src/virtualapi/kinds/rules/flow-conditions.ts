// Validation of the conditions in the status of flow-control objects: each type is set, and occurs once.
import { fieldDuplicate, fieldRequired } from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'

/** Validation errors of `status.conditions`. */
export function typedConditionCauses({ status }: KubeObject): StatusCause[] {
  const { conditions = [] } = (status ?? {}) as { conditions?: readonly { type?: string }[] }
  const types = new Set<string>()
  return conditions.flatMap(({ type = '' }, index) => {
    const at = `status.conditions[${index}].type`
    const causes = types.has(type) ? [fieldDuplicate(at, type)] : []
    types.add(type)
    return type === '' ? [...causes, fieldRequired(at)] : causes
  })
}
