// The rules of one role, arranged so that a decision looks only at rules that can matter.
import type { WorkBudget } from '#apimachinery/work-budget/index.ts'
import type { Attributes } from '#virtualapi/request/authorizer.ts'
import { urlCovers, type AtomicRule, type PolicyRule } from './policy-rules.ts'

/** The length from which a list becomes a Set; shorter lists are searched word by word. */
const minSetSize = 16
/** Roles with fewer rules get no index. */
const minIndexedRules = 8
/** The cost of looking at one rule, in steps of the work budget. */
const ruleSteps = 3

type Words = readonly string[] | ReadonlySet<string>

interface CompiledRule {
  readonly verbs: Words
  readonly apiGroups: Words
  readonly resources: Words
  /** The names that the rule is limited to; empty for all names. */
  readonly resourceNames: Words
  readonly nonResourceURLs: readonly string[]
}

/** Immutable; shared by all decisions until the role changes. */
export class CompiledRules {
  /** Each different rule once, in the order of the role. */
  readonly rules: readonly PolicyRule[]
  /** The texts of `rules`, for comparing them with the rules of other roles. */
  readonly #texts: readonly string[]
  readonly #all: readonly CompiledRule[]
  /** Rules about few resources, by resource. Undefined: the role has so few rules that they are not indexed. */
  readonly #byResource: ReadonlyMap<string, readonly CompiledRule[]> | undefined
  /** Rules about many resources, and about paths: too many words to index. */
  readonly #wide: readonly CompiledRule[]

  constructor(rules: readonly PolicyRule[]) {
    const different = new Map(rules.map((rule) => [JSON.stringify(rule), rule]))
    this.rules = [...different.values()]
    this.#texts = [...different.keys()]
    this.#all = this.rules.map(compileRule)
    const isIndexed = this.#all.length >= minIndexedRules
    this.#byResource = isIndexed ? indexOf(this.#all) : undefined
    this.#wide = isIndexed ? this.#all.filter(isWide) : []
  }

  /** The rules with a text that identifies their content. */
  *entries(): Generator<[text: string, rule: PolicyRule]> {
    for (const [i, rule] of this.rules.entries()) yield [this.#texts[i] ?? '', rule]
  }

  /** True if a rule allows the request; undefined if `work` is spent before such a rule was found. */
  allows({ verb, resource, path }: Attributes, work: WorkBudget): boolean | undefined {
    if (resource === undefined)
      return this.#some(undefined, work, ({ verbs, nonResourceURLs }) => {
        return path !== undefined && hasOrAll(verbs, verb) && someCovers(nonResourceURLs, path, work)
      })
    const { group, subresource, name } = resource
    const combined = subresource === '' ? resource.resource : `${resource.resource}/${subresource}`
    const anySubresource = subresource === '' ? undefined : `*/${subresource}`
    return this.#some(
      combined,
      work,
      (rule) =>
        hasOrAll(rule.verbs, verb) &&
        hasOrAll(rule.apiGroups, group) &&
        matchesResource(rule.resources, combined, anySubresource) &&
        (sizeOf(rule.resourceNames) === 0 || has(rule.resourceNames, name)),
    )
  }

  /**
   * True if one rule allows all that this atomic rule allows; undefined if `work` is spent before such a rule was
   * found.
   */
  covers(atom: AtomicRule, work: WorkBudget): boolean | undefined {
    const [verb = ''] = atom.verbs
    const [url] = atom.nonResourceURLs ?? []
    if (url !== undefined)
      return this.#some(undefined, work, ({ verbs, nonResourceURLs }) => {
        return hasOrAll(verbs, verb) && someCovers(nonResourceURLs, url, work)
      })
    const [group = ''] = atom.apiGroups ?? []
    const [resource = ''] = atom.resources ?? []
    const [name] = atom.resourceNames ?? []
    return this.#some(
      resource,
      work,
      (rule) =>
        hasOrAll(rule.verbs, verb) &&
        hasOrAll(rule.apiGroups, group) &&
        matchesResource(rule.resources, resource, anySubresourceOf(resource)) &&
        (sizeOf(rule.resourceNames) === 0 || (name !== undefined && has(rule.resourceNames, name))),
    )
  }

  /** Like `covers`, for a whole resource rule, which is not split into atomic rules. */
  coversWhole(wanted: PolicyRule, work: WorkBudget): boolean | undefined {
    const { verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = wanted
    const [first] = resources
    if (nonResourceURLs.length > 0 || first === undefined) return false
    const size = verbs.length + apiGroups.length + resources.length + resourceNames.length
    return this.#some(first, work, (rule) => {
      if (!work.trySpend(size)) return false
      return (
        hasEachOrAll(rule.verbs, verbs) &&
        hasEachOrAll(rule.apiGroups, apiGroups) &&
        hasEachOrAll(rule.resources, resources) &&
        (sizeOf(rule.resourceNames) === 0 ||
          (resourceNames.length > 0 && resourceNames.every((name) => has(rule.resourceNames, name))))
      )
    })
  }

  /**
   * True if `test` accepts a rule that may be about `resource` (undefined: about a path); undefined if `work` is spent
   * before.
   */
  #some(resource: string | undefined, work: WorkBudget, test: (rule: CompiledRule) => boolean): boolean | undefined {
    for (const rules of this.#candidates(resource))
      for (const rule of rules) {
        if (!work.trySpend(ruleSteps)) return undefined
        if (test(rule)) return true
      }
    // The test itself may have spent the rest.
    return work.trySpend(0) ? false : undefined
  }

  #candidates(resource: string | undefined): readonly (readonly CompiledRule[])[] {
    if (this.#byResource === undefined) return [this.#all]
    if (resource === undefined) return [this.#wide]
    const keys = new Set([resource, '*', anySubresourceOf(resource) ?? '*'])
    return [this.#wide, ...[...keys].map((key) => this.#byResource?.get(key) ?? [])]
  }
}

function compileRule(rule: PolicyRule): CompiledRule {
  const { verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule
  return {
    verbs: wordsOf(verbs),
    apiGroups: wordsOf(apiGroups),
    resources: wordsOf(resources),
    resourceNames: resourceNames.length < minSetSize ? resourceNames : new Set(resourceNames),
    nonResourceURLs,
  }
}

/** A list in which `*` means all. */
function wordsOf(list: readonly string[]): Words {
  if (list.length < minSetSize) return list
  return list.includes('*') ? ['*'] : new Set(list)
}

function isWide({ resources, nonResourceURLs }: CompiledRule): boolean {
  return sizeOf(resources) >= minSetSize || nonResourceURLs.length > 0
}

function indexOf(rules: readonly CompiledRule[]): Map<string, CompiledRule[]> {
  const index = new Map<string, CompiledRule[]>()
  for (const rule of rules) {
    if (isWide(rule)) continue
    for (const resource of new Set(rule.resources)) {
      const there = index.get(resource)
      if (there === undefined) index.set(resource, [rule])
      else there.push(rule)
    }
  }
  return index
}

function someCovers(patterns: readonly string[], path: string, work: WorkBudget): boolean {
  return work.trySpend(patterns.length) && patterns.some((pattern) => urlCovers(pattern, path))
}

function matchesResource(words: Words, resource: string, anySubresource: string | undefined): boolean {
  return hasOrAll(words, resource) || (anySubresource !== undefined && has(words, anySubresource))
}

/** The word that stands for this subresource of every resource; undefined for a resource without a subresource. */
function anySubresourceOf(resource: string): string | undefined {
  const slash = resource.indexOf('/')
  return slash < 0 ? undefined : `*${resource.slice(slash)}`
}

function hasEachOrAll(words: Words, wanted: readonly string[]): boolean {
  return has(words, '*') || wanted.every((word) => has(words, word))
}

function hasOrAll(words: Words, wanted: string): boolean {
  return has(words, wanted) || has(words, '*')
}

function has(words: Words, wanted: string): boolean {
  return words instanceof Set ? words.has(wanted) : (words as readonly string[]).includes(wanted)
}

function sizeOf(words: Words): number {
  return words instanceof Set ? words.size : (words as readonly string[]).length
}
