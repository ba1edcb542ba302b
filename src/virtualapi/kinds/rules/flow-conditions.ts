// Validation of the conditions in the status of flow-control objects: each type is set, and occurs once.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import {
  all,
  causesOf,
  each,
  fields,
  nonEmpty,
  orEmpty,
  unique,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'

const conditions = each(fields<{ type?: string }>({ type: orEmpty(all<string>(unique(), nonEmpty())) }))

/** The conditions of the object. */
export const typedConditions: Rule<KubeObject> = ({ status }, report) =>
  report.at('status.conditions', conditions, (status as { conditions?: { type?: string }[] } | undefined)?.conditions)

/** Validates what the subresource `status` wrote, for KindRules. */
export const flowStatusCauses = (object: KubeObject, _old: KubeObject, subresource: string) =>
  subresource === 'status' ? causesOf(typedConditions, '', object) : []
