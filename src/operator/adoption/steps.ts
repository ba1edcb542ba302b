// The steps of an adoption, which the program that wires operator and syncer provides: neither imports the other.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import type {
  AdoptedNamespace,
  AdoptionFinding,
  AdoptionState,
  ExportedApi,
  PlannedObject,
  ServiceNetwork,
} from '#crds/index.ts'

/** Both sides of one adoption. */
export interface AdoptionParties {
  readonly adoption: string
  readonly member: {
    readonly name: string
    readonly serviceNetwork: ServiceNetwork
    readonly annotationPrefixes?: readonly string[]
    readonly exportedAPIs: readonly Readonly<ExportedApi>[]
  }
  readonly downstream: KubeClient
  readonly memberNamespace: string
  readonly cluster: string
  readonly clusterId: ClusterId
  readonly namespace: string
  readonly upstream: KubeClient
  readonly podSecurity: string
  readonly signal: AbortSignal
}

/** Plan is known to the provider of the steps only. Each step may run again at any time. */
export interface AdoptionSteps<Plan> {
  /** The record on the namespace of the logical cluster, if it is of this adoption. */
  recordOf(parties: AdoptionParties): Promise<AdoptedNamespace | undefined>
  plan(parties: AdoptionParties, options: { readonly isConsented: boolean }): Promise<Plan>
  objectsOf(plan: Plan): PlannedObject[]
  /** What to know besides the objects. */
  findingsOf(parties: AdoptionParties, plan: Plan): Promise<AdoptionFinding[]>
  countsOf(plan: Plan): ReadonlyMap<PlannedObject['action'], number>
  beginAdoption(parties: AdoptionParties): Promise<AdoptedNamespace>
  claimNamespace(parties: AdoptionParties, record: AdoptedNamespace): Promise<void>
  createUpstream(parties: AdoptionParties, plan: Plan): Promise<void>
  /** A sentence for each workload that the scheduler has not placed on the member. */
  notPlaced(parties: AdoptionParties, plan: Plan): Promise<string[]>
  /** A sentence for each object that cannot be taken over without a change. */
  takeObjects(parties: AdoptionParties, plan: Plan): Promise<string[]>
  writeState(parties: AdoptionParties, state: AdoptionState): Promise<void>
  obstaclesToUndo(parties: AdoptionParties): Promise<string[]>
  /** How many objects in the member had marks of kcp. */
  removeMarks(parties: AdoptionParties): Promise<number>
  removeUpstream(parties: AdoptionParties): Promise<void>
  releaseNamespaces(parties: AdoptionParties, record: AdoptedNamespace): Promise<void>
}
