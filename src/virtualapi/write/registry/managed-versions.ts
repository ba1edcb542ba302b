// Repetition of the ownership computation after conversions. The computation is synchronous, but may need the object in
// a version that only a conversion webhook makes. So it runs again after the webhook has responded.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Conversions, ConvertedDefinition } from '#virtualapi/write/conversion/conversions.ts'
import type { RequestContext, ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'

/** A write whose managed fields are computed. */
export interface ManagedVersions {
  readonly definition: ResourceDefinition
  readonly context: RequestContext
  readonly subresource: string
  /**
   * Returns the object in another version. Throws if the webhook has not been called yet for this version, or has
   * failed. Absent for kinds without a conversion webhook.
   */
  readonly convert?: (object: KubeObject, apiVersion: string) => KubeObject
}

/**
 * Each round calls the webhook for at least one more version. A write needs few rounds, because entries name few
 * versions.
 */
const maxRounds = 50

/**
 * Runs `compute` until it needs no further conversion. Rejects with the error of `compute`. If a conversion fails,
 * `convert` throws its error inside `compute`.
 */
export async function withManagedVersions<T>(
  request: ManagedVersions & { readonly signal: AbortSignal },
  conversions: Conversions,
  compute: (request: ManagedVersions) => T,
): Promise<T> {
  const { definition, context, signal } = request
  const call = { cluster: context.cluster.id, signal }
  const made = new Map<string, { readonly object?: KubeObject; readonly error?: unknown }>()
  for (let round = 1; ; round++) {
    const missing: { key: string; object: KubeObject; apiVersion: string }[] = []
    const convert = (object: KubeObject, apiVersion: string): KubeObject => {
      const key = `${apiVersion} ${JSON.stringify(object)}`
      const known = made.get(key)
      if (known?.object !== undefined) return structuredClone(known.object)
      if (known !== undefined) throw known.error
      missing.push({ key, object: structuredClone(object), apiVersion })
      throw new Error(`the conversion to ${apiVersion} is not there yet`)
    }
    const outcome = attempt(() => compute({ ...request, convert }))
    if (missing.length === 0 || round === maxRounds) {
      if ('error' in outcome) throw outcome.error
      return outcome.value
    }
    for (const { key, object, apiVersion } of missing)
      made.set(
        key,
        await conversions.inVersion(definition as ConvertedDefinition, object, apiVersion, call).then(
          (converted) => ({ object: converted }),
          (error: unknown) => ({ error }),
        ),
      )
    signal.throwIfAborted()
  }
}

function attempt<T>(compute: () => T): { readonly value: T } | { readonly error: unknown } {
  try {
    return { value: compute() }
  } catch (error) {
    return { error }
  }
}
