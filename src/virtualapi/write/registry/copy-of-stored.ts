// A second copy of a stored object. Parsing its bytes twice would take longer.
import { cloneJson, type KubeObject } from '#apimachinery/meta/index.ts'

/** A deep copy of an object, except for the entries of its managedFields: those are never changed, only replaced. */
export function copyOfStored(object: KubeObject): KubeObject {
  const copy = copiedBesides(object, 'metadata')
  copy.metadata = copiedBesides(object.metadata, 'managedFields')
  return copy
}

function copiedBesides<T extends object>(members: T, shared: keyof T): T {
  const copy = { ...members }
  for (const name of Object.keys(copy) as (keyof T)[]) if (name !== shared) copy[name] = cloneJson(copy[name])
  return copy
}
