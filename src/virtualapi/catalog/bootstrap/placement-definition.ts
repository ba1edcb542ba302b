// The definition of Placements, with which tenants say where their workloads run, and its APIService: as they are stored where
// somebody applies config/crd/kcp.dev_placements.yaml.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { crdOf, placementKind, placements } from '#crds/index.ts'
import { crdStatus, defaultCrd, type CustomResourceDefinition } from '#virtualapi/catalog/apiextensions/index.ts'
import { crdApiService } from './local-api-services.ts'
import { placeholders } from './placeholders.ts'

/** In root and in a host the operator keeps definitions of its own; there these are what it finds and updates. */
export function placementDefinition(): KubeObject[] {
  const definition = structuredClone(crdOf(placementKind)) as unknown as CustomResourceDefinition
  definition.metadata = { ...definition.metadata, generation: 1 }
  defaultCrd(definition)
  definition.status = crdStatus(definition, [], placeholders.creationTime)
  return [definition as unknown as KubeObject, crdApiService(placements)]
}
