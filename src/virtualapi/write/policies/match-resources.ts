// The resource rules of an admission policy or a binding.
import type { V1MatchResources, V1NamedRuleWithOperations } from '@kubernetes/client-node'
import { type LabelSelector, selectorFromObject } from '#apimachinery/selector/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'

type Rule = Data<V1NamedRuleWithOperations>

/** The attributes of a request that rules match. */
export interface MatchSubject {
  readonly operation: string
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly subresource: string
  readonly name: string
  /** True for an object in a namespace; false for a Namespace, too. */
  readonly namespaced: boolean
}

export interface ResourceMatch {
  readonly rules: readonly Rule[]
  readonly excluded: readonly Rule[]
  /** matchPolicy Equivalent. */
  readonly matchesEquivalent: boolean
  readonly namespaceSelector: LabelSelector
  readonly objectSelector: LabelSelector
}

export function compileMatch(match: Data<V1MatchResources>): ResourceMatch {
  return {
    rules: match.resourceRules ?? [],
    excluded: match.excludeResourceRules ?? [],
    matchesEquivalent: match.matchPolicy !== 'Exact',
    namespaceSelector: selectorFromObject(match.namespaceSelector ?? {}),
    objectSelector: selectorFromObject(match.objectSelector ?? {}),
  }
}

/**
 * The first form of a request that the rules match: its own form, or else one of the equivalent forms; undefined if
 * none matches.
 */
export function matchingForm<T extends MatchSubject>(
  rules: readonly Rule[],
  own: T,
  equivalents: () => readonly T[],
): T | undefined {
  if (rules.some((rule) => ruleMatches(rule, own))) return own
  const others = equivalents()
  for (const rule of rules) {
    const found = others.find((form) => ruleMatches(rule, form))
    if (found !== undefined) return found
  }
  return undefined
}

function ruleMatches(rule: Rule, subject: MatchSubject): boolean {
  const { operations, apiGroups, apiVersions, resources = [], resourceNames = [], scope = '*' } = rule
  return (
    (scope === '*' || (scope === 'Namespaced') === subject.namespaced) &&
    isNamed(operations, subject.operation) &&
    isNamed(apiGroups, subject.group) &&
    isNamed(apiVersions, subject.version) &&
    resources.some((pattern) => resourceMatches(pattern, subject)) &&
    (resourceNames.length === 0 || resourceNames.includes(subject.name))
  )
}

const isNamed = (words: readonly string[] = [], word: string): boolean => words.includes('*') || words.includes(word)

function resourceMatches(pattern: string, { resource, subresource }: MatchSubject): boolean {
  const [main = '', sub = ''] = pattern.split('/')
  return (main === '*' || main === resource) && (sub === '*' || sub === subresource)
}
