// The unaggregated discovery documents: /api, /apis, /apis/GROUP and /apis/GROUP/VERSION.
import { apiVersionOf, type GroupVersion } from '#apimachinery/meta/index.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import { servedGroups, type ServedGroup } from './served-groups.ts'

interface VersionForDiscovery {
  groupVersion: string
  version: string
}
/** metav1.APIGroup; an item of a list has no kind and apiVersion. */
export interface ApiGroup {
  kind?: 'APIGroup'
  apiVersion?: 'v1'
  name: string
  versions: VersionForDiscovery[]
  preferredVersion: VersionForDiscovery
}
/** metav1.APIResource. */
interface ApiResource {
  name: string
  singularName: string
  namespaced: boolean
  group?: string
  version?: string
  kind: string
  verbs: readonly string[]
  shortNames?: readonly string[]
  categories?: readonly string[]
  storageVersionHash?: string
}

/** The document of `/api`. `serverAddress`: the host:port for clients of any network. */
export function apiVersions(serverAddress: string): unknown {
  return {
    kind: 'APIVersions',
    versions: ['v1'],
    serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
  }
}

/** The document of `/apis`. */
export function apiGroupList(infos: readonly ResourceInfo[]): unknown {
  const builtIn = new Set(infos.flatMap((info) => (info.builtIn ? [info.group] : [])))
  const groups = servedGroups(infos).filter(({ group }) => group !== '')
  const custom = groups
    .filter(({ group }) => !builtIn.has(group))
    .sort((a, b) => (firstName(a) < firstName(b) ? -1 : 1))
  const all = [...groups.filter(({ group }) => builtIn.has(group)), ...custom]
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: all.map(apiGroupOf) }
}

/**
 * The name by which upstream sorts a group among groups of equal priority: the first of the names of its APIServices
 * (`v1.example.com`).
 */
function firstName({ group, versions }: ServedGroup): string {
  return versions.map(({ version }) => `${version}.${group}`).sort()[0] ?? ''
}

/** The document of `/apis/GROUP`; undefined if the group is not served. */
export function apiGroup(infos: readonly ResourceInfo[], group: string): ApiGroup | undefined {
  const [served] = servedGroups(infos.filter((info) => info.group === group))
  if (served === undefined || group === '') return undefined
  return { kind: 'APIGroup', apiVersion: 'v1', ...apiGroupOf(served) }
}

/** The document of `/api/v1` and `/apis/GROUP/VERSION`; undefined if the group version is not served. */
export function apiResourceList(infos: readonly ResourceInfo[], { group, version }: GroupVersion): unknown {
  const [served] = servedGroups(infos.filter((info) => info.group === group && info.version === version))
  const resources = served?.versions[0]?.resources
  if (resources === undefined) return undefined
  return {
    kind: 'APIResourceList',
    // As in kube-apiserver, only the core group omits apiVersion.
    ...(group === '' ? {} : { apiVersion: 'v1' }),
    groupVersion: apiVersionOf({ group, version }),
    resources: resources.flatMap(apiResources),
  }
}

function apiGroupOf({ group, versions }: ServedGroup): ApiGroup {
  const list = versions.map(({ version }) => ({ groupVersion: apiVersionOf({ group, version }), version }))
  const [preferredVersion] = list
  if (preferredVersion === undefined) throw new Error(`group "${group}" has no version`)
  return { name: group, versions: list, preferredVersion }
}

function apiResources(info: ResourceInfo): ApiResource[] {
  const { resource, singular, namespaced, kind, verbs, shortNames, categories, storageVersionHash, group, version } =
    info
  const subresources = info.subresources.map((sub): ApiResource => ({
    name: `${resource}/${sub.name}`,
    singularName: '',
    namespaced,
    ...(sub.group === group && sub.version === version ? {} : { group: sub.group, version: sub.version }),
    kind: sub.kind,
    verbs: sub.verbs,
  }))
  return [
    {
      name: resource,
      singularName: singular,
      namespaced,
      kind,
      verbs,
      ...(shortNames.length === 0 ? {} : { shortNames }),
      ...(categories.length === 0 ? {} : { categories }),
      ...(storageVersionHash === undefined ? {} : { storageVersionHash }),
    },
    ...subresources,
  ]
}
