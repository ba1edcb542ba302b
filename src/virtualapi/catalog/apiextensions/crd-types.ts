// The parts of apiextensions.k8s.io/v1 CustomResourceDefinition that this server reads.
import type { JsonObject, ObjectMeta } from '#apimachinery/meta/index.ts'

export interface CrdNames {
  plural: string
  singular?: string
  kind: string
  listKind?: string
  shortNames?: string[]
  categories?: string[]
}

export interface CrdColumn {
  name: string
  type: string
  jsonPath: string
  format?: string
  description?: string
  priority?: number
}

export interface CrdSubresources {
  status?: JsonObject
  scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath?: string }
}

export interface CrdVersion {
  name: string
  served: boolean
  storage: boolean
  deprecated?: boolean
  deprecationWarning?: string
  schema?: { openAPIV3Schema?: JsonObject }
  subresources?: CrdSubresources
  additionalPrinterColumns?: CrdColumn[]
  selectableFields?: { jsonPath: string }[]
}

export interface CrdConversion {
  strategy: string
  webhook?: JsonObject & { conversionReviewVersions?: string[] | null; clientConfig?: JsonObject }
}

export interface CrdCondition {
  type: string
  status: 'True' | 'False' | 'Unknown'
  reason: string
  message: string
  lastTransitionTime: string
}

export interface CrdStatus {
  acceptedNames?: CrdNames
  conditions?: CrdCondition[]
  storedVersions?: string[]
}

/**
 * A CustomResourceDefinition from a request whose types were checked. Required members may still be missing;
 * validateCrd reports them.
 */
export interface CustomResourceDefinition {
  apiVersion: string
  kind: string
  metadata: ObjectMeta
  spec: {
    group: string
    scope: string
    names: CrdNames
    versions: CrdVersion[]
    conversion?: CrdConversion
    preserveUnknownFields?: boolean
  }
  status?: CrdStatus
}
