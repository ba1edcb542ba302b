// Objects that a tenant stored and that admission reads for a new pod: LimitRanges, a ServiceAccount, a RuntimeClass.
// They may be large, and some add values to each container of a pod, so a small request can become an expensive one.
import { defaultMaxJsonValues } from '#apimachinery/json/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { requestEntityTooLarge } from '#apimachinery/status/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { AdmissionRequest } from './admission.ts'

/** The assumed bytes of JSON per value: a short name and a short text. */
const bytesPerValue = 32
const mostBytes = 4 * 1024 * 1024

type Stored = readonly { readonly bytes: Uint8Array; readonly size: number }[]

/**
 * Decodes the objects, which `what` names in errors. Throws 413 if they have more than 4 MiB together. Below this
 * bound, the request moves to another thread if the objects take long to decode.
 */
export function decodeConfiguration(request: AdmissionRequest, entries: Stored, what: () => string): KubeObject[] {
  const bytes = entries.reduce((sum, { size }) => sum + size, 0)
  if (bytes > mostBytes) throw requestEntityTooLarge(`${what()} are too large to be evaluated: delete some of them`)
  request.context.grown?.({ values: bytes / bytesPerValue, bytes })
  return entries.map((entry) => decodeObject(entry.bytes))
}

/**
 * Charges values that the objects named by `what` are about to add to the object. Throws 413 for more values than a
 * body may have. Below this bound, the request moves to another thread if the values make the object large.
 */
export function chargeAdded(request: AdmissionRequest, values: number, what: () => string): void {
  if (values > defaultMaxJsonValues)
    throw requestEntityTooLarge(`${what()} would add ${values} values to the object, limit is ${defaultMaxJsonValues}`)
  request.context.grown?.({ values, bytes: 0 })
}
