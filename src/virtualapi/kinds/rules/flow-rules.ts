// Validation of the rules of a FlowSchema: verbs on resources, and verbs on URL paths.
import type { V1NonResourcePolicyRule, V1ResourcePolicyRule } from '@kubernetes/client-node'
import { dns1123LabelErrors } from '#apimachinery/field/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { wildcardAlone } from '#virtualapi/kinds/validation/admission-rules.ts'
import { all, each, fields, required, type Rule } from '#virtualapi/kinds/validation/vocabulary.ts'

const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'proxy', 'update', 'watch']
/** Decoding sets an absent list to null. */
type Lists<T> = { [Member in keyof T]: T[Member] extends readonly string[] ? T[Member] | null : T[Member] }

/** A list of items that follow the rule, or `*` alone. */
const wildcardOr = (what: string, rule: Rule<string[]>): Rule<string[]> => {
  const alone = wildcardAlone(what)
  return (list, report) => (list.includes('*') ? report.check(alone, list) : report.check(rule, list))
}
const listOf = (what: string): Rule<string[] | null | undefined> =>
  required(wildcardAlone(`${what}s`), `resource rules must supply at least one ${what}`)

const verbList = required(
  wildcardOr('verbs', (list, report) => {
    if (!list.every((verb) => verbs.includes(verb))) report.notSupported('', list, verbs)
  }),
  'verbs must contain at least one value',
)
const namespaceList = wildcardOr(
  'namespaces',
  each((namespace, report) => {
    for (const text of dns1123LabelErrors(namespace))
      report.invalid('', namespace, `each member of this list must be '*' or a DNS-1123 label; ${text}`)
  }),
)

/** A rule about resources. */
export const resourceRule = all<Lists<Data<V1ResourcePolicyRule>>>(
  fields<Lists<Data<V1ResourcePolicyRule>>>({
    verbs: verbList,
    apiGroups: listOf('api group'),
    resources: listOf('resource'),
  }),
  ({ namespaces, clusterScope = false }, report) => {
    if (!namespaces?.length && !clusterScope)
      report.required('namespaces', 'resource rules that are not cluster scoped must supply at least one namespace')
    report.at('namespaces', namespaceList, namespaces ?? [])
  },
)

/** A rule about URL paths. */
export const nonResourceRule = fields<Lists<Data<V1NonResourcePolicyRule>>>({
  verbs: verbList,
  nonResourceURLs: required(
    wildcardOr(
      'non-resource URLs',
      each((url, report) => {
        const why = urlError(url)
        if (why !== undefined) report.invalid('', url, why)
      }),
    ),
    'nonResourceURLs must contain at least one value',
  ),
})

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
