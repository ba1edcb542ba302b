// Policies and their bindings are subject to no policy, because otherwise a wrong policy could not be removed.
import type { AdmissionRequest } from '#virtualapi/write/admission/admission.ts'

const exempt = /^(?:validating|mutating)admissionpolic(?:ies|ybindings)$/

export function isExemptFromPolicies({ definition: { info } }: AdmissionRequest): boolean {
  return info.group === 'admissionregistration.k8s.io' && exempt.test(info.resource)
}
