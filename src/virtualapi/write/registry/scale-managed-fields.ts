// Ownership of the replicas of an object that is written through its Scale: the Scale has managers of its own, which
// become managers of the object.
import { timestamp } from '#async/index.ts'
import {
  applyConfiguration,
  fieldTypeOf,
  managedFieldsAfterUpdate,
  managedFieldsFromScale,
  scaleManagedFields,
  type FieldWrite,
  type ReplicasPath,
} from '#apimachinery/managed-fields/index.ts'
import { apiVersionOf, type JsonObject, type KubeObject, type ManagedFieldsEntry } from '#apimachinery/meta/index.ts'
import { builtInSchema } from '#virtualapi/kinds/resources/builtin-schemas.ts'
import type { RequestContext, ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'

interface ScaleRequest {
  readonly definition: ResourceDefinition
  readonly context: RequestContext
}

interface Scaling {
  /** The scaled object. */
  readonly current: KubeObject
  /** Its Scale. */
  readonly scale: KubeObject
}

/** The entries of an object whose Scale becomes `wanted`. */
export function managedFieldsOfScaled(
  request: ScaleRequest,
  { current, scale }: Scaling,
  wanted: KubeObject,
): ManagedFieldsEntry[] | undefined {
  const entries = managedFieldsAfterUpdate(withEntries(request, current, scale), wanted, undefined, scaleWrite(request))
  return ofObject(request, current, entries)
}

/**
 * The Scale with a configuration applied, and the entries that the scaled object gets. Throws the errors of
 * `applyConfiguration`.
 */
export function appliedScale(
  request: ScaleRequest,
  { current, scale }: Scaling,
  config: JsonObject,
  { force }: { force: boolean },
): { scale: KubeObject; managedFields: ManagedFieldsEntry[] | undefined } {
  const live = withEntries(request, current, scale)
  const { object, managedFields } = applyConfiguration(live, config, scaleWrite(request), { force })
  return { scale: object, managedFields: ofObject(request, current, managedFields) }
}

function withEntries({ definition }: ScaleRequest, current: KubeObject, scale: KubeObject): KubeObject {
  const entries = scaleManagedFields(current.metadata.managedFields ?? [], replicasPathOf(definition))
  return entries === undefined ? scale : { ...scale, metadata: { ...scale.metadata, managedFields: entries } }
}

function ofObject(
  { definition }: ScaleRequest,
  current: KubeObject,
  entries: readonly ManagedFieldsEntry[] | undefined,
): ManagedFieldsEntry[] | undefined {
  return managedFieldsFromScale(current.metadata.managedFields ?? [], entries ?? [], {
    apiVersion: apiVersionOf(definition.info),
    pathOf: replicasPathOf(definition),
  })
}

const builtInPath = ['f:spec', 'f:replicas']

function replicasPathOf(definition: ResourceDefinition): ReplicasPath {
  const own = apiVersionOf(definition.info)
  return (apiVersion) => {
    const version = apiVersion === own ? definition : definition.inVersion(apiVersion)
    if (version === undefined) return undefined
    if (version.info.builtIn) return builtInPath
    const path = version.custom?.scale?.specReplicasPath
    return path === undefined
      ? null
      : path
          .replace(/^\./, '')
          .split('.')
          .map((member) => `f:${member}`)
  }
}

function scaleWrite({ context }: ScaleRequest): FieldWrite {
  return {
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    subresource: 'scale',
    manager: context.fieldManager,
    now: timestamp(context.now),
    type: fieldTypeOf(builtInSchema({ group: 'autoscaling', version: 'v1', kind: 'Scale' })),
    empty: { apiVersion: 'autoscaling/v1', kind: 'Scale', spec: {}, status: { replicas: 0 } },
    validate: false,
    context: { convert: (object, apiVersion) => (apiVersion === 'autoscaling/v1' ? object : undefined) },
  }
}
