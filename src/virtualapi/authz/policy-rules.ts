// RBAC's PolicyRules: parse, match, compare and print them.
import { goQuote } from '../../apimachinery/text/index.ts'
import { isJsonObject } from '../../apimachinery/meta/index.ts'
import type { Attributes } from './authorizer.ts'

/** rbac.authorization.k8s.io/v1 PolicyRule; an absent list is an empty one. */
export interface PolicyRule {
  readonly verbs: readonly string[]
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
}

/** Parses the rules of a stored Role or ClusterRole. Invalid rules are dropped: they allow nothing. */
export function parseRules(value: unknown): PolicyRule[] {
  return Array.isArray(value) ? value.filter(isJsonObject).map(parseRule) : []
}

function parseRule(value: Readonly<Record<string, unknown>>): PolicyRule {
  const list = (name: string): string[] => {
    const items = value[name]
    return Array.isArray(items) ? items.filter((item): item is string => typeof item === 'string') : []
  }
  const optional = (name: string): Record<string, string[]> => (list(name).length === 0 ? {} : { [name]: list(name) })
  return {
    verbs: list('verbs'),
    ...optional('apiGroups'),
    ...optional('resources'),
    ...optional('resourceNames'),
    ...optional('nonResourceURLs'),
  }
}

/** True if this rule alone allows the request. */
export function ruleAllows(rule: PolicyRule, { verb, resource, path }: Attributes): boolean {
  if (!hasOrAll(rule.verbs, verb)) return false
  if (resource !== undefined) {
    return (
      hasOrAll(rule.apiGroups, resource.group) &&
      resourceMatches(rule.resources ?? [], resource.resource, resource.subresource) &&
      (isEmpty(rule.resourceNames) || (rule.resourceNames ?? []).includes(resource.name))
    )
  }
  return path !== undefined && (rule.nonResourceURLs ?? []).some((url) => urlCovers(url, path))
}

/** A rule with one verb and one resource, name or URL. */
type AtomicRule = PolicyRule

/** How many uncovered atomic rules are reported: a rule with four long lists has more of them than memory holds. */
const maxUncovered = 1000
/** Bound on the string comparisons to find them: some tenths of a second. */
const maxComparisons = 50_000_000

/**
 * The atomic rules of `wanted` that no rule of `held` allows, at most 1000; empty if all are covered. A rule with too many
 * atomic rules to compare counts as uncovered, unless a single rule of `held` covers it as a whole.
 */
export function uncoveredRules(held: readonly PolicyRule[], wanted: readonly PolicyRule[]): PolicyRule[] {
  const uncovered: PolicyRule[] = []
  const comparisonsPerAtom = 1 + held.reduce((sum, rule) => sum + sizeOf(rule), 0)
  let left = maxComparisons
  for (const rule of wanted) {
    left -= comparisonsPerAtom + sizeOf(rule)
    if (left > 0 && held.some((one) => coversWhole(one, rule))) continue
    for (const atom of atomsOf(rule)) {
      left -= comparisonsPerAtom
      if (left < 0) return [...uncovered, rule]
      if (held.some((one) => covers(one, atom))) continue
      uncovered.push(atom)
      if (uncovered.length >= maxUncovered) return uncovered
    }
  }
  return uncovered
}

function sizeOf({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: PolicyRule): number {
  return [verbs, apiGroups, resources, resourceNames, nonResourceURLs].reduce(
    (sum, words) => sum + (words?.length ?? 0),
    1,
  )
}

/** True if one held rule covers a whole resource rule, decided without splitting it into atomic rules. */
function coversWhole(held: PolicyRule, wanted: PolicyRule): boolean {
  const each = (of: readonly string[] | undefined, words: readonly string[] = []): boolean => {
    const known = new Set(of)
    return words.every((word) => known.has(word))
  }
  const all = (of: readonly string[] | undefined, words: readonly string[] | undefined): boolean =>
    of?.includes('*') === true || each(of, words)
  return (
    isEmpty(wanted.nonResourceURLs) &&
    all(held.verbs, wanted.verbs) &&
    all(held.apiGroups, wanted.apiGroups) &&
    all(held.resources, wanted.resources) &&
    (isEmpty(held.resourceNames) || (!isEmpty(wanted.resourceNames) && each(held.resourceNames, wanted.resourceNames)))
  )
}

/** `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`, as in kube-apiserver's messages. */
export function ruleText(rule: PolicyRule): string {
  const part = (label: string, values: readonly string[] | undefined): string[] =>
    isEmpty(values) ? [] : [`${label}:${quotedList(values ?? [])}`]
  const parts = [
    ...part('APIGroups', rule.apiGroups),
    ...part('Resources', rule.resources),
    ...part('NonResourceURLs', rule.nonResourceURLs),
    ...part('ResourceNames', rule.resourceNames),
    ...part('Verbs', rule.verbs),
  ]
  return `{${parts.join(', ')}}`
}

/** Merges rules that differ in their verbs only. */
export function compactRules(rules: readonly PolicyRule[]): PolicyRule[] {
  const grouped = Map.groupBy(rules, ({ verbs: _, ...what }) => JSON.stringify(what))
  return [...grouped.values()].map((same) => ({ ...same[0], verbs: [...new Set(same.flatMap((rule) => rule.verbs))] }))
}

/** `["a" "b"]`, as Go prints a list of quoted strings. */
export function quotedList(values: readonly string[]): string {
  return `[${values.map(goQuote).join(' ')}]`
}

function* atomsOf(rule: PolicyRule): Generator<AtomicRule> {
  const names = isEmpty(rule.resourceNames) ? [undefined] : (rule.resourceNames ?? [])
  for (const group of rule.apiGroups ?? []) {
    for (const resource of rule.resources ?? []) {
      for (const verb of rule.verbs) {
        for (const name of names) {
          yield {
            verbs: [verb],
            apiGroups: [group],
            resources: [resource],
            ...(name === undefined ? {} : { resourceNames: [name] }),
          }
        }
      }
    }
  }
  for (const url of rule.nonResourceURLs ?? []) {
    for (const verb of rule.verbs) yield { verbs: [verb], nonResourceURLs: [url] }
  }
}

function covers(held: PolicyRule, atom: AtomicRule): boolean {
  const [verb = ''] = atom.verbs
  if (!hasOrAll(held.verbs, verb)) return false
  const [url] = atom.nonResourceURLs ?? []
  if (url !== undefined) return (held.nonResourceURLs ?? []).some((candidate) => urlCovers(candidate, url))
  const [group = ''] = atom.apiGroups ?? []
  const [resource = ''] = atom.resources ?? []
  const [name] = atom.resourceNames ?? []
  return (
    hasOrAll(held.apiGroups, group) &&
    coversResource(held.resources ?? [], resource) &&
    (isEmpty(held.resourceNames) || (name !== undefined && (held.resourceNames ?? []).includes(name)))
  )
}

function coversResource(held: readonly string[], wanted: string): boolean {
  if (hasOrAll(held, wanted)) return true
  const slash = wanted.indexOf('/')
  return slash >= 0 && held.includes(`*${wanted.slice(slash)}`)
}

function resourceMatches(ruleResources: readonly string[], resource: string, subresource: string): boolean {
  const combined = subresource === '' ? resource : `${resource}/${subresource}`
  return hasOrAll(ruleResources, combined) || (subresource !== '' && ruleResources.includes(`*/${subresource}`))
}

/** A trailing `*` matches any rest. */
function urlCovers(pattern: string, path: string): boolean {
  return pattern === '*' || pattern === path || (pattern.endsWith('*') && path.startsWith(withoutStars(pattern)))
}

function withoutStars(pattern: string): string {
  let end = pattern.length
  while (pattern[end - 1] === '*') end--
  return pattern.slice(0, end)
}

function hasOrAll(values: readonly string[] | undefined, wanted: string): boolean {
  return values !== undefined && (values.includes('*') || values.includes(wanted))
}

function isEmpty(values: readonly string[] | undefined): boolean {
  return values === undefined || values.length === 0
}
