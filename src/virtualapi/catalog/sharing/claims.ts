// Permission claims: what a provider asks of each consumer, and what the consumer accepts of it. In force is what both
// say.
import { LRUCache } from 'lru-cache'
import {
  compileExpression,
  dynamicValue,
  dynType,
  extendEnvironment,
  kubernetesEnvironment,
  Program,
  type Activation,
  type Environment,
} from '#apimachinery/cel/index.ts'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { groupResourceText, type GroupResource } from '#apimachinery/meta/index.ts'
import {
  claimId,
  matches as matchesSelector,
  type AcceptedClaim,
  type ClaimReference,
  type ClaimBounds,
  type ClaimSelector,
  type PermissionClaim,
} from '#crds/index.ts'
import type { PlainRule, ViewedObject, ViewRule } from '#virtualapi/request/request-view.ts'

/** The rules of a consumer, by `PLURAL.GROUP`. */
export type ConsumerRules = ReadonlyMap<string, ConsumerRule>

/** A rule that is the same for all consumers that accept the same. */
export interface ConsumerRule extends ViewRule {
  readonly expiresMs: number
  /** The identity of the export that gives the resource to the consumer; empty: no export does. */
  readonly identityHash: string
  /** The objects must be named in each of these ways, too. */
  readonly references: readonly ClaimReference[]
}

/** Equal claims of thousands of consumers share their compiled form. */
const compiled = new LRUCache<string, ConsumerRules>({
  max: 5000,
  maxSize: 16 << 20,
  sizeCalculation: (_rules, { length }) => length,
})

/** The rules of a consumer: `claims` of the export, `accepted` of the binding; JSON, or empty for none. */
export function rulesOf(claims: string, accepted: string): ConsumerRules {
  const key = `${claims}\n${accepted}`
  let rules = compiled.get(key)
  if (rules === undefined) compiled.set(key, (rules = compile(claims, accepted)))
  return rules
}

/** The rule of an exported resource. */
export const exportedRule: ViewRule = { allows: () => true, labels: {}, plain: { is: 'exported' } }

/** The rule from its plain form. */
export function ruleFrom(plain: PlainRule): ViewRule | undefined {
  return plain.is === 'exported' ? exportedRule : rulesOf(plain.claims, plain.accepted).get(plain.resource)
}

/** The claims of an export. */
export function claimsIn(text: string): PermissionClaim[] {
  return text === '' ? [] : (parseJsonText(text) as unknown as PermissionClaim[])
}

/** The references of the claims of an export. */
export function referencesIn(text: string): ClaimReference[] {
  return claimsIn(text).flatMap(({ reference }) => (reference === undefined ? [] : [reference]))
}

function compile(claims: string, accepted: string): ConsumerRules {
  const answers = new Map((claimsIn(accepted) as AcceptedClaim[]).map((claim) => [claimId(claim), claim]))
  const rules = new Map<string, ConsumerRule>()
  for (const asked of claimsIn(claims)) {
    const answer = answers.get(claimId(asked))
    if (answer?.state !== 'Accepted') continue
    // Not those of the consumer: each reference costs an index.
    const references = asked.reference === undefined ? [] : [asked.reference]
    const expiresMs = answer.expires === undefined ? Infinity : Date.parse(answer.expires)
    const { identityHash = '' } = asked
    for (const resource of resourcesOf(asked))
      rules.set(groupResourceText(resource), { ...ruleOf(asked, answer), expiresMs, identityHash, references })
  }
  return rules
}

/** The resources of a claim. Events are in two groups, and clients write them in either. */
export function resourcesOf({ group = '', resource }: PermissionClaim): GroupResource[] {
  const isEvents = resource === 'events' && (group === '' || group === 'events.k8s.io')
  return isEvents
    ? [
        { group: '', resource },
        { group: 'events.k8s.io', resource },
      ]
    : [{ group, resource }]
}

function ruleOf(asked: PermissionClaim, answer: AcceptedClaim): ViewRule {
  const checks = [...boundsOf(asked), ...boundsOf(answer), ...selectorChecks(answer.selector)]
  const allowsOf = ({ verbs = [], subresources }: ClaimBounds, isAsked: boolean) => {
    // A consumer that names no verbs accepts all that are asked for.
    const allVerbs = verbs.includes('*') || (!isAsked && verbs.length === 0)
    return (verb: string, subresource: string): boolean =>
      (allVerbs || verbs.includes(verb)) &&
      (subresource === '' || (subresources?.includes(subresource) ?? !named.has(subresource)))
  }
  const [byProvider, byConsumer] = [allowsOf(asked, true), allowsOf(answer, false)]
  return {
    allows: (verb, subresource) => byProvider(verb, subresource) && byConsumer(verb, subresource),
    ...(checks.length > 0 && { matches: (object: ViewedObject) => checks.every((check) => check(object)) }),
    labels: answer.selector?.matchLabels ?? {},
  }
}

/** Subresources that give more than the object itself: claims include them only by name. */
const named = new Set([
  'token',
  'exec',
  'attach',
  'portforward',
  'proxy',
  'ephemeralcontainers',
  'log',
  'eviction',
  'binding',
])

type Check = (object: ViewedObject) => boolean

function boundsOf({ namespaces, objects, cel }: ClaimBounds): Check[] {
  const checks: Check[] = []
  if (namespaces !== undefined) {
    const names = new Set(namespaces)
    checks.push(({ namespace }) => names.has(namespace))
  }
  if (objects !== undefined) checks.push((object) => objects.some((one) => isObject(one, object)))
  if (cel !== undefined) checks.push(celCheck(cel))
  return checks
}

/** Whether an entry of `objects` names the object; an empty name or namespace names all. */
function isObject({ name = '', namespace = '' }: { name?: string; namespace?: string }, object: ViewedObject): boolean {
  return (name === '' || name === object.name) && (namespace === '' || namespace === object.namespace)
}

function selectorChecks(selector: ClaimSelector | undefined): Check[] {
  if (selector === undefined || selector.matchAll === true) return []
  const { matchAll: _all, ...labels } = selector
  return [({ labels: of = {} }) => matchesSelector(labels, of)]
}

/** A check that is false for an expression that is invalid, fails, or costs too much. */
function celCheck(expression: string): Check {
  const program = programOf(expression)
  return ({ object }) => {
    const variables: Activation = new Map([['object', dynamicValue(object())]])
    return program?.run(variables, { costLimit: maxCost }).value === true
  }
}

/** Cost units of an expression for one object: the expression runs for each object of a list. */
const maxCost = 10_000
let environment: Environment | undefined

function programOf(expression: string): Program | undefined {
  environment ??= extendEnvironment(kubernetesEnvironment(), { variables: { object: dynType }, bindings: true })
  const program = compileExpression(expression, environment)
  return program instanceof Program ? program : undefined
}
