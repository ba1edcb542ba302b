// The FlowSchema of a request, by the rules of API Priority and Fairness (KEP-1040). Clients get its uid in a header;
// it does not decide the load that they may cause, which is bounded by the budget of the logical cluster.
import type { JsonObject } from '#apimachinery/meta/index.ts'

/** A request as FlowSchemas match it. `resource` is absent for requests to other paths. */
export interface ClassifiedRequest {
  readonly user: { readonly name: string; readonly groups: readonly string[] }
  readonly verb: string
  readonly path: string
  readonly resource?: {
    readonly group: string
    readonly resource: string
    readonly subresource: string
    readonly namespace: string
  }
}

interface Subject {
  readonly kind: string
  readonly user?: { readonly name: string }
  readonly group?: { readonly name: string }
  readonly serviceAccount?: { readonly namespace: string; readonly name: string }
}

interface Rule {
  readonly subjects?: readonly Subject[]
  readonly resourceRules?: readonly ResourceRule[]
  readonly nonResourceRules?: readonly {
    readonly verbs: readonly string[]
    readonly nonResourceURLs: readonly string[]
  }[]
}

interface ResourceRule {
  readonly verbs: readonly string[]
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly clusterScope?: boolean
  readonly namespaces?: readonly string[]
}

/** The parts of a FlowSchema that classify requests. */
export interface Flow {
  readonly name: string
  readonly priorityLevel: string
  readonly precedence: number
  readonly rules: readonly Rule[]
}

/** Reads the spec of a valid FlowSchema. */
export function flowOf(name: string, spec: JsonObject): Flow {
  const { priorityLevelConfiguration, matchingPrecedence, rules } = spec as {
    priorityLevelConfiguration?: { name: string }
    matchingPrecedence?: number
    rules?: readonly Rule[]
  }
  return {
    name,
    priorityLevel: priorityLevelConfiguration?.name ?? '',
    precedence: matchingPrecedence ?? 1000,
    rules: rules ?? [],
  }
}

/** The order in which FlowSchemas are matched: by precedence, then by name. */
export function byPrecedence(a: Flow, b: Flow): number {
  return a.precedence - b.precedence || (a.name < b.name ? -1 : 1)
}

/** The first flow that the request matches; else catch-all, if it exists. `flows` must be sorted by precedence. */
export function classify(flows: readonly Flow[], request: ClassifiedRequest): Flow | undefined {
  return flows.find((flow) => matches(flow, request)) ?? flows.find(({ name }) => name === 'catch-all')
}

function matches({ rules }: Flow, request: ClassifiedRequest): boolean {
  return rules.some(
    ({ subjects = [], resourceRules = [], nonResourceRules = [] }) =>
      subjects.some((subject) => isSubject(subject, request.user)) &&
      (request.resource === undefined
        ? nonResourceRules.some(
            ({ verbs, nonResourceURLs }) => has(verbs, request.verb) && nonResourceURLs.some(isPath(request.path)),
          )
        : resourceRules.some((rule) => matchesResource(rule, request))),
  )
}

const has = (list: readonly string[], word: string): boolean => list.includes('*') || list.includes(word)

function isSubject(
  { kind, user, group, serviceAccount }: Subject,
  { name, groups }: ClassifiedRequest['user'],
): boolean {
  if (kind === 'User') return user?.name === '*' || user?.name === name
  if (kind === 'Group') return group?.name === '*' || groups.includes(group?.name ?? '')
  if (kind !== 'ServiceAccount' || serviceAccount === undefined) return false
  const prefix = `system:serviceaccount:${serviceAccount.namespace}:`
  return serviceAccount.name === '*' ? name.startsWith(prefix) : name === prefix + serviceAccount.name
}

const isPath =
  (path: string) =>
  (pattern: string): boolean =>
    pattern === path || (pattern.endsWith('*') && path.startsWith(pattern.slice(0, -1)))

function matchesResource(rule: ResourceRule, { verb, resource: asked }: ClassifiedRequest): boolean {
  if (asked === undefined || !has(rule.verbs, verb) || !has(rule.apiGroups, asked.group)) return false
  const { resource, subresource, namespace } = asked
  if (!has(rule.resources, subresource === '' ? resource : `${resource}/${subresource}`)) return false
  return namespace === '' ? rule.clusterScope === true : has(rule.namespaces ?? [], namespace)
}
