// The fields that writes through an endpoint can own: all but the fields that the endpoint resets.
import { recursiveDifference, setOf, type FieldFilter } from './field-set.ts'

type Paths = readonly (readonly string[])[]

/** Leaves these fields out, with all that is in them. */
export function withoutFields(...paths: Paths): FieldFilter {
  const reset = setOf(...paths)
  return (set) => recursiveDifference(set, reset)
}
