// ControllerRevisions: snapshots of a StatefulSet or DaemonSet, whose data never changes.
import { isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { nonNegative } from '#virtualapi/kinds/validation/basic-rules.ts'
import { changes, immutable, validating, validatingChange } from '#virtualapi/kinds/validation/vocabulary.ts'
import type { KindRules } from './kind-rules.ts'

interface Revision {
  readonly revision: number
  readonly data?: JsonValue
}

export const controllerRevisionRules: KindRules = {
  validate: validating<Revision>(({ revision, data = null }, report, old) => {
    report.at('revision', nonNegative, revision)
    if (old !== undefined || isJsonObject(data)) return
    report.required('data', data === null ? 'data is mandatory' : 'data must be a valid JSON object')
  }),
  validateChange: validatingChange(changes<Revision>({ data: immutable() })),
}
