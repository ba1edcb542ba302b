// The forms of an object: as it is stored, in the version of the request, and in the versions that managers name.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { RequestContext, ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import { isConverted, type Conversions } from '#virtualapi/write/conversion/conversions.ts'
import { withManagedVersions, type ManagedVersions } from './managed-versions.ts'

/** The definition of an object, and the request that reads or writes it. */
interface Place {
  readonly definition: ResourceDefinition
  readonly context: RequestContext
  readonly signal: AbortSignal
}

/** Converts between the forms. Every method rejects if the conversion webhook of a custom resource fails. */
export class StoredForms {
  readonly #conversions: Conversions

  constructor(conversions: Conversions) {
    this.#conversions = conversions
  }

  /**
   * Stored bytes in the form that the write path works with: with today's defaults and, if a webhook converts, in the
   * version of the request.
   */
  async readable(place: Place, bytes: Uint8Array): Promise<Uint8Array> {
    const { definition } = place
    return isConverted(definition) ? await this.shown(place, bytes) : (definition.complete?.(bytes) ?? bytes)
  }

  /** Stored bytes in the version of the request. */
  async shown({ definition, context, signal }: Place, bytes: Uint8Array): Promise<Uint8Array> {
    if (!isConverted(definition)) return bytes
    return await this.#conversions.shown(definition, bytes, { cluster: context.cluster.id, signal })
  }

  /** The object in the form in which it is stored. */
  async stored({ definition, context, signal }: Place, object: KubeObject): Promise<KubeObject> {
    if (!isConverted(definition)) return object
    return await this.#conversions.stored(definition, object, { cluster: context.cluster.id, signal })
  }

  /** Runs `compute`, which may need the object in versions that only the conversion webhook can make. */
  async withVersions<T>(
    request: Place & { readonly subresource: string },
    compute: (request: ManagedVersions) => T,
  ): Promise<T> {
    if (!isConverted(request.definition)) return compute(request)
    return await withManagedVersions(request, this.#conversions, compute)
  }
}
