// The resources of the kinds that the demo applies.
import { parseApiVersion, type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'

const plurals: Readonly<Record<string, string>> = {
  ConfigMap: 'configmaps',
  Deployment: 'deployments',
  Placement: 'placements',
  PodDisruptionBudget: 'poddisruptionbudgets',
  Service: 'services',
}

/** The resource of an object of the demo. Throws for any other kind. */
export function pluralPath({ apiVersion, kind }: KubeObject): {
  readonly gvr: GroupVersionResource
  readonly isNamespaced: boolean
} {
  const resource = plurals[kind]
  if (resource === undefined) throw new Error(`the demo applies no ${kind}`)
  return { gvr: { ...parseApiVersion(apiVersion), resource }, isNamespaced: kind !== 'Placement' }
}
