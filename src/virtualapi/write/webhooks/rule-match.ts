// The rules of an admission webhook: the requests that match them.

export interface WebhookRule {
  readonly operations: readonly string[]
  readonly apiGroups: readonly string[]
  readonly apiVersions: readonly string[]
  readonly resources: readonly string[]
  readonly scope: string
}

/** The attributes of a request that rules match. `namespace` of a Namespace object is its own name. */
export interface RuleSubject {
  readonly operation: string
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
}

export function ruleMatches(rule: WebhookRule, subject: RuleSubject): boolean {
  return (
    scopeMatches(rule.scope, subject) &&
    named(rule.operations, subject.operation) &&
    named(rule.apiGroups, subject.group) &&
    named(rule.apiVersions, subject.version) &&
    rule.resources.some((pattern) => resourceMatches(pattern, subject))
  )
}

function named(words: readonly string[], word: string): boolean {
  return words.includes('*') || words.includes(word)
}

function scopeMatches(scope: string, { group, version, resource, namespace }: RuleSubject): boolean {
  if (scope === '*') return true
  const isNamespaced = namespace !== '' && !(group === '' && version === 'v1' && resource === 'namespaces')
  return scope === 'Namespaced' ? isNamespaced : scope === 'Cluster' && !isNamespaced
}

function resourceMatches(pattern: string, { resource, subresource }: RuleSubject): boolean {
  const slash = pattern.indexOf('/')
  const [main, sub] = slash < 0 ? [pattern, ''] : [pattern.slice(0, slash), pattern.slice(slash + 1)]
  return (main === '*' || main === resource) && (sub === '*' || sub === subresource)
}
