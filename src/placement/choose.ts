// Chooses members: filter, score, pick. Pure: the same input gives the same answer. Every refused member has a reason.
import { refuseTarget, type Target } from './target.ts'

/** A member as placement sees it. */
export interface Candidate {
  readonly name: string
  /** Condition Ready is True. */
  readonly ready: boolean
  readonly state: 'Active' | 'Cordoned' | 'Draining'
  /** The member's logicalClusterSelector matches this logical cluster. */
  readonly admits: boolean
  /** Number of copies on the member: fewer is better. */
  readonly load: number
}

export interface Rejection {
  readonly cluster: string
  readonly reason:
    | 'ClusterNotFound'
    | 'ClusterNotReady'
    | 'ClusterCordoned'
    | 'ClusterDraining'
    | 'NotAdmitted'
    | 'NoClusterFits'
    | 'NamespaceNameTooLong'
    | 'WrongClusters'
  readonly message: string
}

export interface Decision {
  /** Where it should run. `none`: somebody asked for no member. `undecided`: nothing changes. `members` is never empty. */
  readonly wanted:
    | { readonly kind: 'members'; readonly names: readonly string[] }
    | { readonly kind: 'none' }
    | { readonly kind: 'undecided' }
  /** Named members that cannot take it now: their copies are Held, and no other copy is removed meanwhile. */
  readonly held: readonly Rejection[]
  /** Members that were considered and refused. */
  readonly rejected: readonly Rejection[]
}

/**
 * Where an object with this target should run. `current`: members with a copy now. A copy stays when its member becomes
 * Cordoned or NotReady, and leaves it only when the member drains.
 */
export function choose({
  target,
  candidates,
  current,
  near = [],
}: {
  target: Target
  candidates: readonly Candidate[]
  current: readonly string[]
  /** Members with other workloads of the namespace: preferred, unless cordoned, draining or not admitting it. */
  near?: readonly string[]
}): Decision {
  if (target.kind === 'none') return { wanted: { kind: 'none' }, held: [], rejected: [] }
  const wrong = refuseTarget(target)
  if (wrong !== undefined) {
    const rejection: Rejection = { cluster: '', reason: 'WrongClusters', message: wrong }
    return { wanted: { kind: 'undecided' }, held: [rejection], rejected: [rejection] }
  }
  if (target.kind === 'members') {
    const refused = target.names.map((name) => refuseNamed(name, candidates, current))
    const names = target.names.filter((_, i) => refused[i] === undefined)
    const held = refused.filter((rejection) => rejection !== undefined)
    return { wanted: names.length === 0 ? { kind: 'undecided' } : { kind: 'members', names }, held, rejected: held }
  }
  return chooseBest(candidates, current, near)
}

function refuseNamed(
  name: string,
  candidates: readonly Candidate[],
  current: readonly string[],
): Rejection | undefined {
  const candidate = candidates.find((known) => known.name === name)
  if (candidate === undefined)
    return { cluster: name, reason: 'ClusterNotFound', message: `there is no member cluster "${name}"` }
  if (current.includes(name) && candidate.state !== 'Draining') return undefined
  return refuse(candidate)
}

function chooseBest(candidates: readonly Candidate[], current: readonly string[], near: readonly string[]): Decision {
  const staying = candidates.filter(({ name, state }) => current.includes(name) && state !== 'Draining')
  const stay = staying.toSorted(byScore)[0]
  if (stay) return { wanted: { kind: 'members', names: [stay.name] }, held: [], rejected: [] }
  const byName = candidates.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const rejected = byName.map(refuse).filter((rejection) => rejection !== undefined)
  // Preferred even if the member is not Ready: without the other workloads of its namespace it may be useless.
  const preferred = candidates.filter(({ name, state, admits }) => near.includes(name) && state === 'Active' && admits)
  const fitting = candidates.filter((candidate) => refuse(candidate) === undefined)
  const best = preferred.toSorted(byScore)[0] ?? fitting.toSorted(byScore)[0]
  if (best) return { wanted: { kind: 'members', names: [best.name] }, held: [], rejected }
  const why = rejected.length === 0 ? 'there is no member cluster' : rejected.map(({ message }) => message).join('; ')
  return { wanted: { kind: 'undecided' }, held: [{ cluster: '', reason: 'NoClusterFits', message: why }], rejected }
}

function refuse({ name, ready, state, admits }: Candidate): Rejection | undefined {
  if (!ready) return { cluster: name, reason: 'ClusterNotReady', message: `member cluster "${name}" is not Ready` }
  if (state === 'Draining')
    return { cluster: name, reason: 'ClusterDraining', message: `member cluster "${name}" is being drained` }
  if (state === 'Cordoned')
    return { cluster: name, reason: 'ClusterCordoned', message: `member cluster "${name}" is cordoned` }
  if (!admits)
    return {
      cluster: name,
      reason: 'NotAdmitted',
      message: `member cluster "${name}" does not admit this logical cluster`,
    }
  return undefined
}

function byScore(a: Candidate, b: Candidate): number {
  return Number(b.ready) - Number(a.ready) || a.load - b.load || (a.name < b.name ? -1 : 1)
}
