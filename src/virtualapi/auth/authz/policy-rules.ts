// RBAC's PolicyRules: parse, split and print them.
import { goQuote } from '#apimachinery/text/index.ts'
import { isJsonObject } from '#apimachinery/meta/index.ts'

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

const optionalLists = ['apiGroups', 'resources', 'resourceNames', 'nonResourceURLs'] as const

function parseRule(value: Readonly<Record<string, unknown>>): PolicyRule {
  const rule: { -readonly [field in keyof PolicyRule]: PolicyRule[field] } = { verbs: textsOf(value['verbs']) }
  for (const field of optionalLists) {
    const texts = textsOf(value[field])
    if (texts.length > 0) rule[field] = texts
  }
  return rule
}

function textsOf(items: unknown): readonly string[] {
  if (!Array.isArray(items)) return []
  const isText = (item: unknown): item is string => typeof item === 'string'
  return items.every(isText) ? items : items.filter(isText)
}

/** A rule with one verb, and with either one API group, one resource and at most one name, or one URL. */
export type AtomicRule = PolicyRule

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

/** The atomic rules that a rule consists of: as many as the product of the lengths of its lists. */
export function* atomsOf(rule: PolicyRule): Generator<AtomicRule> {
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

/** True if the path of a rule matches `path`. A trailing `*` matches any rest. */
export function urlCovers(pattern: string, path: string): boolean {
  return pattern === '*' || pattern === path || (pattern.endsWith('*') && path.startsWith(withoutStars(pattern)))
}

function withoutStars(pattern: string): string {
  let end = pattern.length
  while (pattern[end - 1] === '*') end--
  return pattern.slice(0, end)
}

function isEmpty(values: readonly string[] | undefined): boolean {
  return values === undefined || values.length === 0
}
