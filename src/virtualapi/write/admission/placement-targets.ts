// Refuses targets that the rules of admins forbid when a tenant writes them. So the tenant gets the error at once,
// instead of a workload that is Held.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import { clustersAnnotation, isPlaceable } from '#crds/index.ts'
import { boundsOf, forbiddenTarget, parseTarget } from '#placement/index.ts'
import type { AdmissionPlugin, AdmissionRequest } from './admission.ts'
import { isTenantsWrite, isWorkload, namespaceOf, placementsKey, rulesFor, type Fleet } from './placement-rules.ts'

/**
 * Refuses with 403 a forbidden member in annotation `kcp.dev/clusters` or in `spec.clusters` of a Placement; an
 * unchanged target of a stored object stays.
 */
export function placementTargets(fleet: () => Fleet | undefined): AdmissionPlugin {
  return {
    name: 'PlacementTargets',
    validate(request, object, old) {
      if (object === undefined) return
      const text = namedIn(request, object)
      if (text === undefined || (old !== undefined && text === namedIn(request, old))) return
      if (!isTenantsWrite(request)) return
      const known = fleet()
      const why = known && refusal(request, object, { text, fleet: known })
      if (why === undefined) return
      const { definition, name } = request
      throw forbidden(definition.info, name || (object.metadata.generateName ?? ''), `${fieldOf(request)}: ${why}`)
    },
  }
}

function fieldOf({ definition }: AdmissionRequest): string {
  return definition.storageKey === placementsKey ? 'spec.clusters' : `annotation ${clustersAnnotation}`
}

/** The target that the object names; undefined if it names none, or if the object is not of a kind that is placed. */
function namedIn(request: AdmissionRequest, object: KubeObject): string | undefined {
  const { storageKey } = request.definition
  if (storageKey === placementsKey) {
    const { clusters } = (object['spec'] ?? {}) as { clusters?: unknown }
    return Array.isArray(clusters) ? clusters.join(',') : undefined
  }
  const text = object.metadata.annotations?.[clustersAnnotation]
  if (text === undefined || storageKey === 'namespaces') return text
  return isWorkload(request) && isPlaceable(object) ? text : undefined
}

function refusal(
  request: AdmissionRequest,
  object: KubeObject,
  { text, fleet }: { readonly text: string; readonly fleet: Fleet },
): string | undefined {
  const { labels: clusterLabels } = request.context.cluster
  const ofPlacement = request.definition.storageKey === placementsKey
  const namespaceLabels = ofPlacement ? undefined : namespaceOf(request, object)?.metadata.labels
  const { ofCluster, global } = rulesFor(request, fleet, { namespaceLabels })
  // A tenant's Placement may be for namespaces to which a rule with a namespaceSelector does not apply, so only rules
  // for all namespaces count.
  const names = new Set(ofPlacement ? fleet.adminPlacements().filter(isForAll).map(nameOf) : [])
  const rules = [...ofCluster, ...global].filter(({ name }) => !ofPlacement || names.has(name))
  return forbiddenTarget(parseTarget(text), { bounds: boundsOf(rules), members: fleet.all(), clusterLabels })
}

type AdminPlacement = ReturnType<Fleet['adminPlacements']>[number]

function isForAll({ spec }: AdminPlacement): boolean {
  return Object.keys(spec?.namespaceSelector ?? {}).length === 0
}

function nameOf({ metadata }: AdminPlacement): string {
  return metadata.name
}
