// Translates a StoreError to a StatusError that names the kind and the object. No other file does this.
import type { GroupResource } from '#apimachinery/meta/index.ts'
import {
  alreadyExists,
  conflict,
  forbidden,
  notFound,
  objectModified,
  requestEntityTooLarge,
  serviceUnavailable,
  statusError,
  tooManyRequests,
} from '#apimachinery/status/index.ts'
import { isStoreError } from '#store/index.ts'

/** The StatusError for a StoreError; any other error is returned unchanged. */
export function fromStoreError(error: unknown, gr: GroupResource, name: string): unknown {
  if (!isStoreError(error)) return error
  switch (error.code) {
    case 'KeyExists':
      return alreadyExists(gr, name)
    case 'KeyMissing':
      return notFound(gr, name)
    case 'RevisionMismatch':
      return conflict(gr, name, objectModified, error)
    case 'TooLarge':
      return requestEntityTooLarge(`${gr.resource} "${name}" is too large to be stored: ${error.message}`)
    case 'OverBudget':
      return forbidden(gr, name, error.message)
    case 'Full':
      return statusError(
        507,
        'InsufficientStorage',
        `there is no room for ${gr.resource} "${name}": ${error.message}`,
        {
          cause: error,
        },
      )
    case 'Busy':
      return tooManyRequests(`${error.message}, please try again later`)
    case 'Frozen':
      return serviceUnavailable(`${error.message}; please try again in a moment`, error)
    case 'Closed':
    case 'Unavailable':
    case 'Compacted':
      return serviceUnavailable(`the store is not available right now: ${error.message}; try again`, error)
  }
}
