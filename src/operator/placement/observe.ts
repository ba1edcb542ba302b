// What the move engine must know of a workload, read from objects: pieces of members, Services and their pieces.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import type { DeepReadonly } from '../../client/index.ts'
import { contentHash, piecesOf, syncerFinalizer, type DeploymentPiece, type ServicePiece } from '../../crds/index.ts'
import type { CopySeen } from '../../placement/index.ts'

type Kept = DeepReadonly<KubeObject>

export interface Surroundings {
  /** Services of the workload's namespace. */
  readonly services: Iterable<Kept>
  /** Pods of this member reach, and are reached by, pods of other such members. */
  readonly isFlat: (member: string) => boolean
  /** This member answers. One that doesn't can't be told of endpoints, and none of its pods is waited for. */
  readonly isReady: (member: string) => boolean
}

interface Workload {
  readonly replicas?: number
  readonly template?: { readonly metadata?: { readonly labels?: Readonly<Record<string, string>> } }
}

/** What is known of the workload's copy in one member. */
export function seeCopy(workload: Kept, member: string, { services, ...surroundings }: Surroundings): CopySeen {
  const piece = piecesOf<DeploymentPiece>(workload as KubeObject)[member]
  const { replicas = 1, template } = (workload['spec'] ?? {}) as Workload
  const observed = piece?.observed === contentHash(workload['spec'])
  const available = observed && isComplete(piece, replicas)
  const selecting = [...services].filter((service) => selects(service, template?.metadata?.labels ?? {}))
  const counts = selecting.map((service) => countsOf(service, member, surroundings))
  return {
    observed,
    available,
    published: replicas === 0 || counts.every((known) => known.length > 0 && known.every((count) => count >= replicas)),
    endpointsGone: counts.every((known) => known.every((count) => count === 0)),
    gone: piece === undefined && !workload.metadata.finalizers?.includes(syncerFinalizer(member)),
  }
}

function isComplete(
  { replicas = 0, updatedReplicas = 0, availableReplicas = 0 }: DeploymentPiece,
  wanted: number,
): boolean {
  return updatedReplicas >= wanted && replicas === updatedReplicas && availableReplicas >= wanted
}

/** How many endpoints in `member` each member that is to know them does know. Empty: the member has not said anything. */
function countsOf(service: Kept, member: string, { isFlat, isReady }: Omit<Surroundings, 'services'>): number[] {
  const pieces = piecesOf<ServicePiece>(service as KubeObject)
  if (pieces[member] === undefined) return []
  return Object.entries(pieces)
    .filter(([other]) => other === member || (isFlat(member) && isFlat(other) && isReady(other)))
    .map(([, piece]) => piece.endpoints?.[member] ?? 0)
}

function selects(service: Kept, labels: Readonly<Record<string, string>>): boolean {
  const { selector = {} } = (service['spec'] ?? {}) as { selector?: Record<string, string> }
  const wanted = Object.entries(selector)
  return wanted.length > 0 && wanted.every(([label, value]) => labels[label] === value)
}
