// Writes the resource table: the content of /apis/GROUP/VERSION on a server of the pinned version, for the group
// versions it serves by default and those of enabled features.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ResourceInfo, SubresourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'

interface ApiResource {
  name: string
  singularName: string
  namespaced: boolean
  kind: string
  group?: string
  version?: string
  verbs: string[]
  shortNames?: string[]
  categories?: string[]
  storageVersionHash?: string
}
interface ApiResourceList {
  groupVersion: string
  resources: ApiResource[]
}
interface ApiGroupList {
  groups: { name: string; versions: { groupVersion: string; version: string }[] }[]
}

/** Beta versions that are served: MutatingAdmissionPolicy is in no stable version of 1.34. */
const enabledBeta = new Set(['admissionregistration.k8s.io/v1beta1'])

/** The served versions in the order of discovery: groups by priority, the preferred version first. */
export function servedGroupVersions(module: string): { group: string; version: string }[] {
  const { groups } = readJson(module, 'apis.json') as ApiGroupList
  const named = groups.flatMap(({ name, versions }) => versions.map(({ version }) => ({ group: name, version })))
  return [{ group: '', version: 'v1' }, ...named].filter(
    ({ group, version }) => /^v\d+$/.test(version) || enabledBeta.has(`${group}/${version}`),
  )
}

/** Rows in the order of discovery. */
export function readResources(module: string): ResourceInfo[] {
  return servedGroupVersions(module).flatMap(({ group, version }) => {
    const file = group === '' ? `api__${version}.json` : `apis__${group}__${version}.json`
    const { resources } = readJson(module, file) as ApiResourceList
    return resources
      .filter(({ name }) => !name.includes('/'))
      .map((resource): ResourceInfo => ({
        group,
        version,
        resource: resource.name,
        singular: resource.singularName,
        kind: resource.kind,
        namespaced: resource.namespaced,
        verbs: resource.verbs,
        shortNames: resource.shortNames ?? [],
        categories: resource.categories ?? [],
        subresources: subresourcesOf(resource.name, resources, { group, version }),
        ...(resource.storageVersionHash === undefined ? {} : { storageVersionHash: resource.storageVersionHash }),
        builtIn: true,
      }))
  })
}

function subresourcesOf(
  parent: string,
  resources: readonly ApiResource[],
  gv: { group: string; version: string },
): SubresourceInfo[] {
  return resources
    .filter(({ name }) => name.startsWith(`${parent}/`))
    .map(({ name, group = gv.group, version = gv.version, kind, verbs }) => ({
      name: name.slice(parent.length + 1),
      group,
      version,
      kind,
      verbs,
    }))
}

function readJson(module: string, file: string): unknown {
  return JSON.parse(readFileSync(join(module, 'api/discovery', file), 'utf8'))
}
