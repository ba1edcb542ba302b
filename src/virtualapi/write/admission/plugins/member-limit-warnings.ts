// Warns the writer of a workload or a Service about fields that members do not get.
import { isDeepStrictEqual } from 'node:util'
import { memberLimits, workloadKinds } from '#crds/index.ts'
import { storageKeyOf } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { AdmissionPlugin } from '#virtualapi/write/admission/admission.ts'
import { mayWriteOwnFields } from './own-fields.ts'

const storageKeys: ReadonlySet<string> = new Set(['services', ...workloadKinds.map(({ gvr }) => storageKeyOf(gvr))])

/** Adds a warning for each field that members do not get, when such fields are written or changed. */
export const memberLimitWarnings: AdmissionPlugin = {
  name: 'MemberLimitWarnings',
  validate({ definition, subresource, context }, object, old) {
    if (!storageKeys.has(definition.storageKey) || subresource !== '' || object === undefined) return
    if (mayWriteOwnFields(context)) return
    const limits = memberLimits(object)
    if (limits.length === 0 || (old !== undefined && isDeepStrictEqual(limits, memberLimits(old)))) return
    context.warnings.push(...limits)
  },
}
