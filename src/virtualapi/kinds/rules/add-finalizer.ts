// Protection finalizers keep an object while it is in use; a controller removes them.
import type { KubeObject } from '#apimachinery/meta/index.ts'

/** Adds the finalizer if it is missing. Mutates the object. */
export function addFinalizer({ metadata }: KubeObject, finalizer: string): void {
  const finalizers = metadata.finalizers ?? []
  if (!finalizers.includes(finalizer)) metadata.finalizers = [...finalizers, finalizer]
}
