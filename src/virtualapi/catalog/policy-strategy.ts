// The Strategy of ValidatingAdmissionPolicies. The write itself checks their expressions against the schemas of the
// kinds that they match; upstream's controller does so a moment later.
import { isDeepStrictEqual } from 'node:util'
import type { V1ValidatingAdmissionPolicySpec } from '@kubernetes/client-node'
import { compareText, parseApiVersion, type KubeObject } from '#apimachinery/meta/index.ts'
import { checkedType, type CheckedKind, typeWarnings } from '#virtualapi/kinds/admission-expressions/index.ts'
import type { RequestContext, Strategy } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import type { Catalog } from './catalog.ts'

type Spec = Data<V1ValidatingAdmissionPolicySpec>
type Rule = NonNullable<NonNullable<Spec['matchConstraints']>['resourceRules']>[number]

const maxKinds = 10
/** The cost of compiling one character of an expression, in units of the request's budget. */
const stepsPerCharacter = 150

/** The strategy of ValidatingAdmissionPolicies. `base`: the strategy that all built-in kinds share. */
export function policyStrategy(base: Strategy, catalog: Catalog): Strategy {
  const check = (object: KubeObject, generation: number, context: RequestContext): void => {
    const warnings = warningsOf(object['spec'] as Spec, context, catalog)
    const typeChecking = warnings.length === 0 ? {} : { expressionWarnings: warnings }
    object['status'] = { ...(object['status'] as object), observedGeneration: generation, typeChecking }
  }
  return {
    ...base,
    statusManager: 'validatingadmissionpolicy-status',
    prepareForCreate(object, context) {
      base.prepareForCreate?.(object, context)
      check(object, 1, context)
    },
    prepareForUpdate(object, old, context, subresource) {
      base.prepareForUpdate?.(object, old, context, subresource)
      // Our controller writes the status after a kind that the policy matches was defined, changed or deleted.
      if (subresource === 'status' && context.user.realm.kind === 'installation')
        check(object, old.metadata.generation ?? 1, context)
      if (subresource !== '' || isDeepStrictEqual(object['spec'], old['spec'])) return
      check(object, (old.metadata.generation ?? 0) + 1, context)
    },
  }
}

function warningsOf(spec: Spec, { objects, work }: RequestContext, catalog: Catalog) {
  const { matchConstraints, paramKind } = spec
  const all = catalog.all(objects)
  const typed = (info: ResourceInfo): CheckedKind[] => {
    const { group, version, kind, builtIn } = info
    const schema = catalog.find(objects, info)?.schema
    return schema === undefined ? [] : [{ group, version, kind, type: checkedType(schema, { kind, builtIn }) }]
  }
  const { group, version } = parseApiVersion(paramKind?.apiVersion ?? '')
  const params = all.find((info) => info.group === group && info.version === version && info.kind === paramKind?.kind)
  return typeWarnings(spec, {
    kinds: namedResources(matchConstraints?.resourceRules ?? [], all).flatMap(typed),
    params: params && typed(params)[0]?.type,
    trySpend: (characters) => work.trySpend(characters * stepsPerCharacter),
  })
}

/**
 * The resources that rules name without a wildcard, in the order of their kinds. As upstream, the core group matches
 * every group.
 */
function namedResources(rules: readonly Rule[], all: readonly ResourceInfo[]): ResourceInfo[] {
  const found = new Set<ResourceInfo>()
  for (const { apiGroups = [], apiVersions = [], resources = [] } of rules) {
    if ([...apiGroups, ...apiVersions].some((text) => text.includes('*'))) continue
    const named = all.filter(
      (info) =>
        (apiGroups.includes(info.group) || apiGroups.includes('')) &&
        apiVersions.includes(info.version) &&
        resources.includes(info.resource),
    )
    for (const info of named.slice(0, maxKinds)) found.add(info)
    if (named.length >= maxKinds) break
  }
  return [...found].sort(
    (a, b) => compareText(a.group, b.group) || compareText(a.version, b.version) || compareText(a.kind, b.kind),
  )
}
