// API groups of the Kubernetes community (*.k8s.io, *.kubernetes.io) must carry an approval annotation (KEP-2337).
import { goQuote } from '#apimachinery/text/index.ts'
import type { CrdCondition, CustomResourceDefinition } from './crd-types.ts'

/** The annotation whose value is the URL of the approval, or a text that starts with "unapproved". */
export const approvalAnnotation = 'api-approved.kubernetes.io'

/** The state of an approval, and the message of its condition or error. */
export interface Approval {
  readonly state: 'approved' | 'bypassed' | 'missing' | 'invalid'
  readonly message: string
}

/** The approval that a CRD names; undefined for groups that need none. */
export function approvalOf({ metadata, spec }: CustomResourceDefinition): Approval | undefined {
  const { group } = spec
  const isProtected = ['k8s.io', 'kubernetes.io'].some((domain) => group === domain || group.endsWith(`.${domain}`))
  if (!isProtected) return undefined
  const value = metadata.annotations?.[approvalAnnotation] ?? ''
  const doc = 'see https://github.com/kubernetes/enhancements/pull/1111'
  const must = `protected groups must have approval annotation ${goQuote(approvalAnnotation)}`
  if (value === '') return { state: 'missing', message: `${must}, ${doc}` }
  if (value.startsWith('unapproved')) return { state: 'bypassed', message: `not approved: ${goQuote(value)}` }
  if (/^[a-z][a-z0-9+.-]*:\/\/[^/]+/i.test(value)) return { state: 'approved', message: `approved in ${value}` }
  return { state: 'invalid', message: `${must} with either a URL or a reason starting with "unapproved", ${doc}` }
}

/** The condition that reports the approval; undefined for groups that need none. */
export function approvalCondition(crd: CustomResourceDefinition): Omit<CrdCondition, 'lastTransitionTime'> | undefined {
  const approval = approvalOf(crd)
  if (approval === undefined) return undefined
  const reason = {
    approved: 'ApprovedAnnotation',
    bypassed: 'UnapprovedAnnotation',
    missing: 'MissingAnnotation',
    invalid: 'InvalidAnnotation',
  }[approval.state]
  const status = approval.state === 'approved' ? 'True' : 'False'
  return { type: 'KubernetesAPIApprovalPolicyConformant', status, reason, message: approval.message }
}
