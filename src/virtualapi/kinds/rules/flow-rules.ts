// Validation of the rules of a FlowSchema: verbs on resources, and verbs on URL paths.
import type { V1NonResourcePolicyRule, V1ResourcePolicyRule } from '@kubernetes/client-node'
import { dns1123LabelErrors, fieldInvalid, fieldNotSupported, fieldRequired } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'

const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'proxy', 'update', 'watch']
/** Decoding sets an absent list to null. */
type Lists<T> = { [Member in keyof T]: T[Member] extends readonly string[] ? T[Member] | null : T[Member] }

/** Validation errors of a rule about resources. */
export function resourceRuleCauses(path: string, rule: Lists<Data<V1ResourcePolicyRule>>): StatusCause[] {
  const { apiGroups, resources, clusterScope = false } = rule
  const namespaces = rule.namespaces ?? []
  return [
    ...verbCauses(`${path}.verbs`, rule.verbs ?? []),
    ...listCauses(`${path}.apiGroups`, apiGroups ?? [], 'api group'),
    ...listCauses(`${path}.resources`, resources ?? [], 'resource'),
    ...(namespaces.length === 0 && !clusterScope
      ? [
          fieldRequired(
            `${path}.namespaces`,
            'resource rules that are not cluster scoped must supply at least one namespace',
          ),
        ]
      : namespaceCauses(`${path}.namespaces`, namespaces)),
  ]
}

/** Validation errors of a rule about URL paths. */
export function nonResourceRuleCauses(path: string, rule: Lists<Data<V1NonResourcePolicyRule>>): StatusCause[] {
  const urls = rule.nonResourceURLs ?? []
  const at = `${path}.nonResourceURLs`
  const causes = verbCauses(`${path}.verbs`, rule.verbs ?? [])
  if (urls.length === 0) return [...causes, fieldRequired(at, 'nonResourceURLs must contain at least one value')]
  if (urls.includes('*')) return [...causes, ...wildcardCauses(at, urls, 'non-resource URLs')]
  return [...causes, ...urls.flatMap((url, index) => urlCauses(`${at}[${index}]`, url))]
}

/** `*` excludes all other items. */
function wildcardCauses(path: string, list: readonly string[], what: string): StatusCause[] {
  return list.length > 1 && list.includes('*')
    ? [fieldInvalid(path, [...list], `if '*' is present, must not specify other ${what}`)]
    : []
}

function verbCauses(path: string, list: readonly string[]): StatusCause[] {
  if (list.length === 0) return [fieldRequired(path, 'verbs must contain at least one value')]
  if (list.includes('*')) return wildcardCauses(path, list, 'verbs')
  return list.every((verb) => verbs.includes(verb)) ? [] : [fieldNotSupported(path, [...list], verbs)]
}

function listCauses(path: string, list: readonly string[], what: string): StatusCause[] {
  return list.length === 0
    ? [fieldRequired(path, `resource rules must supply at least one ${what}`)]
    : wildcardCauses(path, list, `${what}s`)
}

function namespaceCauses(path: string, namespaces: readonly string[]): StatusCause[] {
  if (namespaces.includes('*')) return wildcardCauses(path, namespaces, 'namespaces')
  return namespaces.flatMap((namespace, index) =>
    dns1123LabelErrors(namespace).map((text) =>
      fieldInvalid(`${path}[${index}]`, namespace, `each member of this list must be '*' or a DNS-1123 label; ${text}`),
    ),
  )
}

function urlCauses(path: string, url: string): StatusCause[] {
  const why = urlError(url)
  return why === undefined ? [] : [fieldInvalid(path, url, why)]
}

function urlError(url: string): string | undefined {
  if (url === '') return 'must not be empty'
  if (url === '/') return undefined
  if (!url.startsWith('/')) return 'must start with slash'
  if (url.includes(' ')) return 'must not contain white-space'
  if (url.includes('//')) return 'must not contain double slash'
  const star = url.indexOf('*')
  return star < 0 || (star === url.length - 1 && url.endsWith('/*'))
    ? undefined
    : 'wildcard can only do suffix matching'
}
