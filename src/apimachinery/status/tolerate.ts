// Failures that are no failure: what was to be deleted has gone, somebody else was faster.
import { isStatusError } from './status-error.ts'

/**
 * For `.catch`: resolves with undefined where the failure is a Status of one of these reasons, such as `NotFound`; throws
 * any other.
 */
export function tolerate(...reasons: readonly string[]): (error: unknown) => undefined {
  return (error) => {
    if (!reasons.some((reason) => isStatusError(error, reason))) throw error
  }
}
