// Ignores expected failures: the object to delete does not exist, or the object to create exists already.
import { isStatusError } from './status-error.ts'

/**
 * For `.catch`: resolves with undefined if the failure is a Status with one of these reasons, such as `NotFound`;
 * rethrows any other.
 */
export function tolerate(...reasons: readonly string[]): (error: unknown) => undefined {
  return (error) => {
    if (!reasons.some((reason) => isStatusError(error, reason))) throw error
  }
}
