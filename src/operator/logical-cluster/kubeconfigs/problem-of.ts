// Refusals by the API in which Secrets are kept, in words that say what to do. Pure.
import { isStatusError } from '#apimachinery/status/index.ts'
import type { Problem } from './outcome.ts'
import type { SecretRef } from './secret-format.ts'

/** The role that grants what is needed, see scripts/rbac-rules.ts. */
const role = 'kcp-kubeconfig-secrets'

/** The problem behind a failed write or deletion; undefined if trying again is all there is to do. */
export function problemOf(error: unknown, { namespace, name }: SecretRef): Problem | undefined {
  const secret = `Secret "${namespace}/${name}"`
  if (isStatusError(error, 'NotFound'))
    return {
      reason: 'NamespaceMissing',
      message: `${secret}: namespace "${namespace}" does not exist; create it, or remove the entry`,
    }
  if (isStatusError(error, 'Forbidden'))
    return {
      reason: 'Forbidden',
      message: `${secret}: ${error.message}; bind ClusterRole ${role} to the operator in namespace "${namespace}", or remove the entry`,
    }
  if (isStatusError(error, 'Invalid') || isStatusError(error, 'BadRequest'))
    return { reason: 'Refused', message: `${secret}: ${error.message}` }
  return undefined
}
