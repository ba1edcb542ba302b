// Aggregated discovery: all groups, versions and resources in one document.
import type { ResourceInfo } from '../resources/resource-info.ts'
import { servedGroups, type ServedVersion } from './served-groups.ts'

/** The exact content type of the answer; clients compare it. */
export const aggregatedContentType = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

/** True if the client takes the aggregated form. Other parameters, such as `profile=nopeer`, do not matter. */
export function acceptsAggregated(accept: string | undefined): boolean {
  // As in kube-apiserver, neither the order nor the quality of the clauses matters.
  return (accept ?? '').split(',').some((clause) => {
    const [type = '', ...params] = clause.split(';').map((part) => part.trim())
    const isJson = type === 'application/json' || type === 'application/*' || type === '*/*'
    return isJson && aggregatedParameters.every((param) => params.includes(param))
  })
}

const aggregatedParameters = ['g=apidiscovery.k8s.io', 'v=v2', 'as=APIGroupDiscoveryList']

/** `/api` (the core group) or `/apis` (all others) in the aggregated form. */
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

/** As in kube-apiserver: group and version are empty for built-in resources if they are the parent's; never for custom ones. */
function responseKind(
  { group, version, kind }: { group: string; version: string; kind: string },
  parent: ResourceInfo,
): unknown {
  const same = parent.builtIn && group === parent.group && version === parent.version
  return same ? { group: '', version: '', kind } : { group, version, kind }
}
