// The adoption of a running namespace of a member, as the operator sees it.
import {
  adoptedNamespace,
  maxPlannedObjects,
  type AdoptedNamespace,
  type AdoptionAction,
  type AdoptionFinding,
  type PlannedObject,
} from '#crds/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { findingsOf } from './findings.ts'
import { obstaclesToUndo, releaseNamespaces, removeMarks, removeUpstream } from './give-back.ts'
import { listed, planAdoption, type AdoptionPlan } from './plan-adoption.ts'
import type { AdoptionRequest } from './request.ts'
import { beginAdoption, claimNamespace, createUpstream, notPlaced, takeObjects, writeState } from './take-over.ts'

export { startLabelling } from './label-made.ts'
export type { AdoptionRequest }

/** The record on the namespace of the logical cluster, if it is of this adoption. */
async function recordOf({
  upstream,
  namespace,
  adoption,
  signal,
}: AdoptionRequest): Promise<AdoptedNamespace | undefined> {
  const found = await upstream.tryGet<KubeObject>(gvrs.namespaces, { name: namespace }, { signal })
  const record = adoptedNamespace(found)
  return record?.adoption === adoption ? record : undefined
}

/** The steps of adoptions. All may run again at any time. */
export const adoptionSteps = {
  recordOf,
  plan: planAdoption,
  objectsOf: (plan: AdoptionPlan): PlannedObject[] => listed(plan.objects, maxPlannedObjects),
  findingsOf: (request: AdoptionRequest, { live }: AdoptionPlan): Promise<AdoptionFinding[]> =>
    findingsOf(request, live),
  countsOf: ({ objects }: AdoptionPlan): Map<AdoptionAction, number> => {
    const counts = new Map<AdoptionAction, number>()
    for (const { action } of objects) counts.set(action, (counts.get(action) ?? 0) + 1)
    return counts
  },
  beginAdoption,
  claimNamespace,
  createUpstream,
  notPlaced,
  takeObjects,
  writeState,
  obstaclesToUndo,
  removeMarks,
  removeUpstream,
  releaseNamespaces,
}
