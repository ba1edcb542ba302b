// What an explanation reads besides the object.
import type { SeenObject } from './finding.ts'

/** What the explanation of an object reads. Absent lists were not read, and nothing is said about them. */
export interface Surroundings {
  /** Its logical cluster is asleep: that it has no pods is as it should be. Default: what `logicalCluster` says. */
  readonly isAsleep?: boolean
  /** The name of the logical cluster. */
  readonly cluster: string
  readonly nowMs: number
  readonly logicalCluster?: SeenObject
  readonly namespace?: SeenObject
  /** MemberClusters, or the Members that a tenant sees. */
  readonly members?: readonly SeenObject[]
  /** The pods of the object: of the same namespace, selected by it or owned by it. */
  readonly pods?: readonly SeenObject[]
  /** Events of its namespace. */
  readonly events?: readonly SeenObject[]
  /** EndpointSlices of its namespace, for a Service. */
  readonly endpointSlices?: readonly SeenObject[]
}
