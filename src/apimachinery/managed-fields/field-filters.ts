// The fields that writes through an endpoint can own: all but the fields that the endpoint resets.
import { recursiveDifference, setOf, type FieldFilter } from './field-set.ts'

type Paths = readonly (readonly string[])[]

/** A filter that drops these fields, with all fields in them. */
export function withoutFields(...paths: Paths): FieldFilter {
  const reset = setOf(...paths)
  return (set) => recursiveDifference(set, reset)
}
