// Pods that a workload makes of its template, and which of them go first.
import { createHash } from 'node:crypto'
import { canonicalJson } from '#apimachinery/json/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { forbidden, isStatusError } from '#apimachinery/status/index.ts'
import { controlledBy, gvrOf, type Pod, type PodTemplate } from '#simulation/cluster/objects.ts'
import { isReady } from '#simulation/cluster/pod-facts.ts'
import type { Simulation } from '#simulation/cluster/simulation.ts'

export interface MadePod {
  /** Default: the name of the owner with a random end. */
  readonly name?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly spec?: Partial<Pod['spec']>
  readonly by: string
}

/** A tenant may ask for any number of replicas; those that fit on no node cost memory, too. */
const maxPods = 5000

/** Letters and digits of hashes in names, as in Kubernetes: none make words. */
const alphabet = 'bcdfghjklmnpqrstvwxz2456789'

/** A short hash of a template, which becomes a part of names. */
export function hashOf(value: unknown, collisions = 0): string {
  const digest = createHash('sha256')
    .update(`${collisions}${canonicalJson(value)}`)
    .digest()
  return Array.from(digest.subarray(0, 10), (byte) => alphabet[byte % alphabet.length]).join('')
}

/** Creates a pod of the template. Rejects with the StatusError of a refusal, of which an Event tells. */
export async function createPod(
  simulation: Simulation,
  owner: KubeObject,
  template: PodTemplate,
  { name, labels, annotations, spec, by }: MadePod,
): Promise<Pod> {
  const { namespace = '', name: ownerName = '' } = owner.metadata
  if (simulation.cache.pods.size >= maxPods)
    throw forbidden(gvrOf('pods'), name ?? '', `a simulated member has at most ${maxPods} pods`)
  const object: KubeObject = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...template.metadata,
      namespace,
      ...(name === undefined ? { generateName: `${ownerName}-` } : { name }),
      labels: { ...template.metadata?.labels, ...labels },
      ...((annotations ?? template.metadata?.annotations) && {
        annotations: { ...template.metadata?.annotations, ...annotations },
      }),
      ownerReferences: [controlledBy(owner)],
    },
    spec: { ...template.spec, ...spec },
  }
  try {
    const pod = await simulation.create('pods', object)
    const message = `Created pod: ${pod.metadata.name ?? ''}`
    void simulation.event(owner, { type: 'Normal', reason: 'SuccessfulCreate', message, by })
    return pod
  } catch (error) {
    if (isStatusError(error) && error.code < 500 && error.code !== 409) {
      const message = `Error creating: ${error.message}`
      void simulation.event(owner, { type: 'Warning', reason: 'FailedCreate', message, by })
    }
    throw error
  }
}

/** Deletes a pod gracefully. */
export async function deletePod(simulation: Simulation, owner: KubeObject, pod: Pod, by: string): Promise<void> {
  await simulation.delete('pods', pod)
  const message = `Deleted pod: ${pod.metadata.name ?? ''}`
  void simulation.event(owner, { type: 'Normal', reason: 'SuccessfulDelete', message, by })
}

/** The pods in the order in which they are given up: first those that serve least, then the youngest. */
export function inOrderOfDeletion(pods: readonly Pod[]): Pod[] {
  return [...pods].sort((a, b) => rankOf(a) - rankOf(b) || costOf(a) - costOf(b) || youngerFirst(a, b))
}

function rankOf(pod: Pod): number {
  if (pod.spec.nodeName === undefined) return 0
  if (pod.status?.phase !== 'Running') return 1
  return isReady(pod) ? 3 : 2
}

function costOf({ metadata }: Pod): number {
  return Number(metadata.annotations?.['controller.kubernetes.io/pod-deletion-cost'] ?? 0)
}

function youngerFirst({ metadata: a }: Pod, { metadata: b }: Pod): number {
  return (b.creationTimestamp ?? '').localeCompare(a.creationTimestamp ?? '')
}

/** Enqueues the controller of each pod that changes, if it is of the kind. */
export function followOwnedPods(simulation: Simulation, kind: string, enqueue: (key: string) => void): void {
  const told = (pod: Pod | undefined): void => {
    const owner = pod?.metadata.ownerReferences?.find((one) => one.controller === true && one.kind === kind)
    if (pod !== undefined && owner !== undefined) enqueue(`${pod.metadata.namespace ?? ''}/${owner.name}`)
  }
  simulation.cache.pods.onChange((after, before) => told(after ?? before))
}
