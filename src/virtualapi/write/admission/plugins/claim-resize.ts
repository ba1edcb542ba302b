// Allows PersistentVolumeClaims to grow only if they are bound and their StorageClass allows expansion.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import { quantityOf } from '#apimachinery/quantity/index.ts'
import type { AdmissionPlugin, AdmissionRequest } from '#virtualapi/write/admission/admission.ts'

interface Claim extends KubeObject {
  spec: { storageClassName?: string; resources?: { requests?: Record<string, string> } }
  status?: { phase?: string }
}

const classAnnotation = 'volume.beta.kubernetes.io/storage-class'

/** Refuses with 403 every other update that requests more storage than before. */
export const claimResize: AdmissionPlugin = {
  name: 'PersistentVolumeClaimResize',
  validate(request, object, old) {
    const { operation, definition, subresource, name } = request
    if (operation !== 'UPDATE' || subresource !== '' || definition.storageKey !== 'persistentvolumeclaims') return
    if (object === undefined || old === undefined || sizeOf(object as Claim) <= sizeOf(old as Claim)) return
    if ((old as Claim).status?.phase !== 'Bound')
      throw forbidden(definition.info, name, 'Only bound persistent volume claims can be expanded')
    if (!allowsGrowth(request, classOf(object as Claim), classOf(old as Claim)))
      throw forbidden(
        definition.info,
        name,
        'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
      )
  },
}

function sizeOf({ spec }: Claim): bigint {
  return quantityOf(spec.resources?.requests?.['storage'] ?? '0').nanos
}

function classOf({ metadata, spec }: Claim): string {
  return metadata.annotations?.[classAnnotation] ?? spec.storageClassName ?? ''
}

function allowsGrowth({ context }: AdmissionRequest, name: string, before: string): boolean {
  if (name === '' || name !== before) return false
  const entry = context.objects.get('storageclasses.storage.k8s.io', '', name)
  return entry !== undefined && decodeObject(entry.bytes)['allowVolumeExpansion'] === true
}
