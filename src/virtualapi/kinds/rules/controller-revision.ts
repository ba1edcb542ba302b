// ControllerRevisions: snapshots of a StatefulSet or DaemonSet, whose data never changes.
import { isDeepStrictEqual } from 'node:util'
import { fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import { isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import type { KindRules } from './kind-rules.ts'
import { fieldImmutable, nonNegative } from '#virtualapi/kinds/validation/values.ts'

export const controllerRevisionRules: KindRules = {
  validate({ revision, data }, old) {
    const causes = nonNegative('revision', revision as number)
    if (old !== undefined) return causes
    if (data === undefined || data === null) return [...causes, fieldRequired('data', 'data is mandatory')]
    return isJsonObject(data) ? causes : [...causes, fieldRequired('data', 'data must be a valid JSON object')]
  },
  validateChange(object, old) {
    const data = (object['data'] as JsonValue | undefined) ?? null
    return isDeepStrictEqual(data, old['data'] ?? null) ? [] : [fieldInvalid('data', data, fieldImmutable)]
  },
}
