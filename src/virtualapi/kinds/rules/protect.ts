// Finalizers that keep an object while it is used; a controller takes them away.
import type { KubeObject } from '../../../apimachinery/meta/index.ts'

/** Adds the finalizer where it is not there yet. Mutates the object. */
export function protect({ metadata }: KubeObject, finalizer: string): void {
  const finalizers = metadata.finalizers ?? []
  if (!finalizers.includes(finalizer)) metadata.finalizers = [...finalizers, finalizer]
}
