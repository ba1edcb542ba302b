// The error of a request that admission policies refuse.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { forbidden, type StatusCause, statusError, type StatusError } from '#apimachinery/status/index.ts'
import type { AdmissionRequest } from '#virtualapi/write/admission/admission.ts'

interface Refusal {
  readonly code: number
  readonly reason: string
  readonly causes: readonly string[]
  /** The message. Default: the message of a forbidden request, with the first cause. */
  readonly message?: string
}

export function policyRefusal(
  { definition, name, ofCollection = false }: AdmissionRequest,
  object: KubeObject | undefined,
  { code, reason, causes, message }: Refusal,
): StatusError {
  const { metadata } = object ?? {}
  const shown = (ofCollection ? '' : name) || metadata?.name || metadata?.generateName || 'Unknown'
  const all = causes.map((text): StatusCause => ({ message: text }))
  const { status } = forbidden(definition.info, shown, causes[0] ?? '', all)
  return statusError(code, reason, message ?? status.message ?? '', status.details ? { details: status.details } : {})
}
