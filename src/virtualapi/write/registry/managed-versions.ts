// Repetition of the ownership computation after conversions. The computation does not wait, and yet may need the object
// in a version that a conversion webhook makes, so it runs again once the webhook has answered.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Conversions, ConvertedDefinition } from '#virtualapi/write/conversion/conversions.ts'
import type { RequestContext, ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'

/** A write whose managed fields are computed. */
export interface ManagedVersions {
  readonly definition: ResourceDefinition
  readonly context: RequestContext
  readonly subresource: string
  /**
   * Where a webhook converts: the object in another version. Throws where the webhook was not asked yet, or has failed.
   */
  readonly convert?: (object: KubeObject, apiVersion: string) => KubeObject
}

/** Each round asks for at least one more; a write needs few of them, since entries name few versions. */
const maxRounds = 50

/** Runs `compute` until it misses nothing. Throws what it throws; a failed conversion is thrown to `compute`. */
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
