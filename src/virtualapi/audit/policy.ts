// Audit policies (audit.k8s.io/v1): checked with the rules and texts of kube-apiserver, and compiled. The first rule
// that matches a request decides how much a log gets of it; without a matching rule the log gets nothing.
import { parse } from 'yaml'
import {
  aggregateText,
  causeText,
  childPath,
  dns1123SubdomainErrors,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
  indexPath,
} from '#apimachinery/field/index.ts'
import { isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { auditLevels, auditStages, type AuditPolicy, type AuditRule } from '#crds/index.ts'
import { misfitsOf, withoutNulls, type Shape } from '#virtualapi/auth/sign-in/configuration-shape.ts'
import type { Attributes } from '#virtualapi/request/authorizer.ts'
import type { AuditLevel, AuditScope, AuditStage } from '#virtualapi/request/request-audit.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'

/** A policy that was checked. Returns how much a log gets of a request; undefined: nothing. */
export type CompiledPolicy = (attributes: Attributes, user: UserInfo | undefined) => AuditScope | undefined

/** The errors of a policy. Empty if it is valid. */
export function policyCauses({ omitStages, rules = [] }: AuditPolicy): StatusCause[] {
  return [
    ...stageCauses(omitStages, 'omitStages'),
    ...rules.flatMap((rule, i) => ruleCauses(rule, indexPath('rules', i))),
  ]
}

function ruleCauses(rule: Partial<AuditRule>, path: string): StatusCause[] {
  const { level = '', nonResourceURLs = [], resources = [], namespaces = [], omitStages } = rule
  const at = (name: string): string => childPath(path, name)
  const causes: StatusCause[] = []
  if (level === '') causes.push(fieldRequired(at('level')))
  else if (!isOneOf(level, auditLevels)) causes.push(fieldNotSupported(at('level'), level, auditLevels))
  nonResourceURLs.forEach((url, i) => causes.push(...urlCauses(url, indexPath(at('nonResourceURLs'), i))))
  for (const { group = '', resources: names = [], resourceNames = [] } of resources) {
    const why = group === '' || group === '*' ? [] : dns1123SubdomainErrors(group)
    if (why.length > 0) causes.push(fieldInvalid(`${at('resources')}.group`, group, why.join(',')))
    if (resourceNames.length > 0 && names.length === 0)
      causes.push(
        fieldInvalid(
          `${at('resources')}.resourceNames`,
          [...resourceNames],
          'using resourceNames requires at least one resource',
        ),
      )
  }
  causes.push(...stageCauses(omitStages, at('omitStages')))
  if (nonResourceURLs.length > 0 && (resources.length > 0 || namespaces.length > 0))
    causes.push(
      fieldInvalid(
        at('nonResourceURLs'),
        [...nonResourceURLs],
        'rules cannot apply to both regular resources and non-resource URLs',
      ),
    )
  return causes
}

function urlCauses(url: string, path: string): StatusCause[] {
  if (url === '*') return []
  const causes: StatusCause[] = []
  if (!url.startsWith('/'))
    causes.push(fieldInvalid(path, url, "non-resource URL rules must begin with a '/' character"))
  if (url.slice(0, -1).includes('*'))
    causes.push(fieldInvalid(path, url, "non-resource URL wildcards '*' must be the final character of the rule"))
  return causes
}

function stageCauses(stages: readonly string[] = [], path: string): StatusCause[] {
  return stages.flatMap((stage, i) =>
    isOneOf(stage, auditStages)
      ? []
      : [fieldInvalid(indexPath(path, i), stage, `allowed stages are ${auditStages.join(',')}`)],
  )
}

const isOneOf = <T extends string>(value: string, allowed: readonly T[]): value is T =>
  allowed.some((one) => one === value)

/** Compiles a policy that has no errors. */
export function compilePolicy({ omitStages = [], omitManagedFields = false, rules = [] }: AuditPolicy): CompiledPolicy {
  const compiled = rules.map((rule) => compileRule(rule, { omitStages, omitManagedFields }))
  return (attributes, user) => compiled.find(({ matches }) => matches(attributes, user))?.scope
}

interface CompiledRule {
  readonly matches: (attributes: Attributes, user: UserInfo | undefined) => boolean
  /** Undefined: the requests are in no event. */
  readonly scope: AuditScope | undefined
}

function compileRule(
  rule: AuditRule,
  policy: { readonly omitStages: readonly string[]; readonly omitManagedFields: boolean },
): CompiledRule {
  const { level, users = [], userGroups = [], verbs = [], omitStages = [], omitManagedFields } = rule
  const [names, groups, actions] = [new Set(users), new Set(userGroups), new Set(verbs)]
  const isOfTarget = targetMatcher(rule)
  return {
    matches: (attributes, user) =>
      (names.size === 0 || (user !== undefined && names.has(user.name))) &&
      (groups.size === 0 || user?.groups.some((group) => groups.has(group)) === true) &&
      (actions.size === 0 || actions.has(attributes.verb)) &&
      isOfTarget(attributes),
    scope:
      level === 'None'
        ? undefined
        : {
            level: level as AuditLevel,
            omitStages: new Set([...policy.omitStages, ...omitStages] as AuditStage[]),
            omitManagedFields: omitManagedFields ?? policy.omitManagedFields,
            byPolicy: true,
          },
  }
}

function targetMatcher({
  namespaces = [],
  resources = [],
  nonResourceURLs = [],
}: AuditRule): (attributes: Attributes) => boolean {
  const spaces = new Set(namespaces)
  if (namespaces.length > 0 || resources.length > 0)
    return ({ resource }) =>
      resource !== undefined &&
      (spaces.size === 0 || spaces.has(resource.namespace)) &&
      (resources.length === 0 || resources.some((one) => isOfResources(one, resource)))
  if (nonResourceURLs.length > 0)
    return ({ resource, path = '' }) => resource === undefined && nonResourceURLs.some((url) => isOfUrl(path, url))
  return () => true
}

type GroupResources = NonNullable<AuditRule['resources']>[number]

function isOfResources(
  { group = '', resources = [], resourceNames = [] }: GroupResources,
  target: NonNullable<Attributes['resource']>,
): boolean {
  if (group !== target.group && group !== '*') return false
  if (resources.length === 0) return true
  if (resourceNames.length > 0 && !resourceNames.includes(target.name)) return false
  const { resource, subresource } = target
  const combined = subresource === '' ? resource : `${resource}/${subresource}`
  return resources.some(
    (one) =>
      one === '*' ||
      one === combined ||
      (subresource !== '' && one === `*/${subresource}`) ||
      (one.endsWith('/*') && one.slice(0, -2) === resource),
  )
}

function isOfUrl(path: string, url: string): boolean {
  return url === '*' || url === path || (url.endsWith('*') && path.startsWith(url.replace(/\*+$/, '')))
}

const texts: Shape = { each: 'text' }
const policyShape: Shape = {
  fields: {
    apiVersion: 'text',
    kind: 'text',
    metadata: 'anything',
    omitStages: texts,
    omitManagedFields: 'flag',
    rules: {
      each: {
        fields: {
          ...{
            level: 'text',
            users: texts,
            userGroups: texts,
            verbs: texts,
            namespaces: texts,
            nonResourceURLs: texts,
          },
          resources: { each: { fields: { group: 'text', resources: texts, resourceNames: texts } } },
          ...{ omitStages: texts, omitManagedFields: 'flag' },
        },
      },
    },
  },
}

const maxIgnored = 10

export interface ReadPolicy {
  readonly policy: AuditPolicy
  /** Fields that do not exist, which kube-apiserver ignores with a warning, too. */
  readonly ignored: readonly string[]
}

/**
 * The policy in a text, YAML or JSON, as `--audit-policy-file` has it. Throws with all errors of form, or if there are
 * none, with all errors of content.
 */
export function parsePolicy(text: string): ReadPolicy {
  const document: unknown = parse(text, { maxAliasCount: 0 })
  if (!isJsonObject(document)) throw new Error('the text is no Policy of audit.k8s.io/v1')
  const { apiVersion, kind } = document
  if (kind !== 'Policy' || apiVersion !== 'audit.k8s.io/v1')
    throw new Error(
      `a policy must have apiVersion audit.k8s.io/v1 and kind Policy, not ${shown(apiVersion)} and ${shown(kind)}`,
    )
  const misfits = misfitsOf(document, policyShape)
  const ignored = misfits.filter((misfit) => misfit.startsWith('unknown field '))
  const wrong = misfits.filter((misfit) => !misfit.startsWith('unknown field '))
  // The list of misfits is bounded, so wrong types may hide behind unknown fields.
  if (wrong.length > 0 || misfits.length > maxIgnored) throw new Error(aggregateText(misfits))
  const policy = withoutNulls(document) as AuditPolicy
  const causes = policyCauses(policy)
  if (causes.length > 0) throw new Error(aggregateText(causes.map(causeText)))
  if ((policy.rules ?? []).length === 0) throw new Error('loaded illegal policy with 0 rules')
  return { policy, ignored }
}

const shown = (value: JsonValue | undefined): string => (value === undefined ? 'none' : JSON.stringify(value))
