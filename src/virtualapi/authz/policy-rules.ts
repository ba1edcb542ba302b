// RBAC's PolicyRules: what one allows, whether some cover another, how they are printed.
import { goQuote } from '../../apimachinery/text/index.ts'
import { isJsonObject } from '../../apimachinery/meta/index.ts'
import type { Attributes } from './authorizer.ts'

/** rbac.authorization.k8s.io/v1 PolicyRule; members that are absent mean empty. */
export interface PolicyRule {
  readonly verbs: readonly string[]
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
}

/** The rules of a Role or ClusterRole as it was stored. What is no rule is left out: it allows nothing. */
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

/** Does this rule alone allow what is asked for? */
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

/** Parts that are told of; of a rule of four long lists there are more than there is memory. */
const maxUncovered = 1000
/** Words looked at to find them: some tenths of a second. */
const maxLooks = 50_000_000

/**
 * The parts of `wanted` that no rule of `held` allows: an atomic rule each, the first thousand. Empty: all covered. A rule of so
 * many parts that they are not looked at one by one counts as one part, covered where one rule of `held` covers all of it.
 */
export function uncoveredRules(held: readonly PolicyRule[], wanted: readonly PolicyRule[]): PolicyRule[] {
  const uncovered: PolicyRule[] = []
  const looksForAtom = 1 + held.reduce((sum, rule) => sum + wordsOf(rule), 0)
  let left = maxLooks
  for (const rule of wanted) {
    left -= looksForAtom + wordsOf(rule)
    if (left > 0 && held.some((one) => coversWhole(one, rule))) continue
    for (const atom of atomsOf(rule)) {
      left -= looksForAtom
      if (left < 0) return [...uncovered, rule]
      if (held.some((one) => covers(one, atom))) continue
      uncovered.push(atom)
      if (uncovered.length >= maxUncovered) return uncovered
    }
  }
  return uncovered
}

function wordsOf({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: PolicyRule): number {
  return [verbs, apiGroups, resources, resourceNames, nonResourceURLs].reduce(
    (sum, words) => sum + (words?.length ?? 0),
    1,
  )
}

/** Whether one rule that is held allows everything that a rule about resources does, without taking it apart. */
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

/** `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`: as kubectl users know it from kube-apiserver. */
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

/** Rules that differ in their verbs only, as one. */
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

/** A trailing `*` stands for whatever follows. */
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
