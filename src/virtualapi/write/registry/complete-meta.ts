// The last change of a written object before it is validated: the same place for a create, an update and a patch.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import { dropEmptyMetadata } from '#virtualapi/kinds/resources/object-meta.ts'
import { generationChanged } from './spec-and-status.ts'

/** Counts the generation and drops what is empty. */
export function completeMeta(
  { definition, subresource }: AdmissionRequest,
  object: KubeObject,
  old: KubeObject | undefined,
): void {
  const { strategy } = definition
  const { metadata } = object
  dropEmptyMetadata(metadata)
  if (old === undefined) {
    if (strategy.hasGeneration) metadata.generation = 1
  } else if (subresource !== 'status' && subresource !== 'binding') {
    if (generationChanged(strategy, object, old)) metadata.generation = (old.metadata.generation ?? 0) + 1
  }
}
