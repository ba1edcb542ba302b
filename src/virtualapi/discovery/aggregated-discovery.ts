// Aggregated discovery: all groups, versions and resources in one document.
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import { servedGroups, type ServedVersion } from './served-groups.ts'

/** The exact content types of the response; clients compare them. */
export const aggregatedContentTypes = {
  json: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
  protobuf: 'application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
} as const

/**
 * The format in which the client accepts the aggregated form; undefined if it accepts only another form. Other
 * parameters, such as `profile=nopeer`, do not matter.
 */
export function aggregatedFormat(accept: string | undefined): 'json' | 'protobuf' | undefined {
  // As in kube-apiserver, clauses with fewer parameters come later, whatever their order and quality.
  for (const clause of (accept ?? '').split(',')) {
    const [type = '', ...params] = clause.split(';').map((part) => part.trim())
    if (!aggregatedParameters.every((param) => params.includes(param))) continue
    if (type === 'application/vnd.kubernetes.protobuf') return 'protobuf'
    if (type === 'application/json' || type === 'application/*' || type === '*/*') return 'json'
  }
  return undefined
}

const aggregatedParameters = ['g=apidiscovery.k8s.io', 'v=v2', 'as=APIGroupDiscoveryList']

/** The document of `/api` (the core group) or `/apis` (all other groups) in the aggregated form. */
export function aggregatedDiscovery(infos: readonly ResourceInfo[], which: 'core' | 'groups'): unknown {
  const groups = servedGroups(infos.filter(({ group }) => (group === '') === (which === 'core')))
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: groups.map(({ group, versions }) => ({
      metadata: group === '' ? {} : { name: group },
      versions: versions.map(versionOf),
    })),
  }
}

function versionOf({ version, resources }: ServedVersion): unknown {
  return { version, resources: resources.map(resourceOf), freshness: 'Current' }
}

function resourceOf(info: ResourceInfo): unknown {
  const { group, version, resource, singular, kind, namespaced, verbs, shortNames, categories, subresources } = info
  return {
    resource,
    responseKind: responseKind({ group, version, kind }, info),
    scope: namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs,
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
    ...(subresources.length === 0
      ? {}
      : {
          subresources: subresources.map((sub) => ({
            subresource: sub.name,
            responseKind: responseKind(sub, info),
            verbs: sub.verbs,
          })),
        }),
  }
}

/**
 * The responseKind of a resource or subresource. As in kube-apiserver, group and version are empty if they are those of
 * the parent resource, but only for built-in resources.
 */
function responseKind(
  { group, version, kind }: { group: string; version: string; kind: string },
  parent: ResourceInfo,
): unknown {
  const same = parent.builtIn && group === parent.group && version === parent.version
  return same ? { group: '', version: '', kind } : { group, version, kind }
}
