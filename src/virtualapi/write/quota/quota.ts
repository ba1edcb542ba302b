// The ResourceQuotas of a namespace, decoded as far as quotas need them.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import { type Amounts, amountsOf } from '#apimachinery/quantity/index.ts'
import type { ScopeRequirement } from './scopes.ts'

/** The resource of ResourceQuotas in store keys. */
export const quotaResource = 'resourcequotas'

export interface Quota {
  readonly name: string
  readonly hard: Amounts
  /** The conditions of spec.scopes and spec.scopeSelector. An object counts only if it meets all of them. */
  readonly scopes: readonly ScopeRequirement[]
  readonly object: KubeObject
}

interface Spec {
  readonly hard?: Readonly<Record<string, string>> | null
  readonly scopes?: readonly string[] | null
  readonly scopeSelector?: { readonly matchExpressions?: readonly ScopeRequirement[] | null }
}

/** The quotas of a namespace, in the order of their names. */
export function quotasOf(objects: ClusterObjects, namespace: string): readonly Quota[] {
  return objects.list({ resource: quotaResource, namespace }).map(({ bytes }) => quotaOf(decodeObject(bytes)))
}

function quotaOf(object: KubeObject): Quota {
  const { hard, scopes, scopeSelector } = (object['spec'] ?? {}) as Spec
  return {
    name: object.metadata.name ?? '',
    hard: amountsOf(hard),
    scopes: [
      ...(scopes ?? []).map((scopeName) => ({ scopeName, operator: 'Exists' })),
      ...(scopeSelector?.matchExpressions ?? []),
    ],
    object,
  }
}
