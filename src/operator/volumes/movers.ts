// The pods in which `kcp mover` runs: beside the application in the old member, and on the new volume in the other one.
import type { Duplex } from 'node:stream'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { contentHash, systemNamespace, volumeMoveLabel } from '#crds/index.ts'
import type { MoverRole, PartyCredentials } from '#mover/index.ts'
import { directWayTo, type DirectWay } from './direct-way.ts'
import { gvrs, Obstacle, type MemberSide, type VolumeParties } from './parties.ts'

const moverPort = 8443

/** The identities of one move: made by this process, and new after it was started again. */
export type MoveCredentials = Readonly<Record<'control' | MoverRole, PartyCredentials>>

export interface MoverWish {
  readonly role: MoverRole
  readonly image: string
  readonly credentials: MoveCredentials
  /** The claim that it mounts. */
  readonly claim: string
  readonly isBlock: boolean
  /** The node where the application has the volume; undefined: any. */
  readonly node?: string
}

export type DialMover = (signal: AbortSignal) => Promise<Duplex>

/** A mover that runs. */
export interface Mover {
  /** Opens a connection to it, through the API of its member. */
  readonly dial: DialMover
  readonly direct: DirectWay
}

interface PodStatus {
  readonly phase?: string
  readonly podIP?: string
  readonly conditions?: readonly { type: string; status: string; message?: string }[]
  readonly containerStatuses?: readonly {
    state?: { waiting?: { reason?: string; message?: string } }
    lastState?: { terminated?: { exitCode?: number; message?: string } }
  }[]
}

/** The side of a role, and the namespace of its mover. */
export function placeOf({ source, target }: VolumeParties, role: MoverRole): { side: MemberSide; namespace: string } {
  return role === 'source'
    ? { side: source, namespace: source.namespace }
    : { side: target, namespace: systemNamespace }
}

/**
 * Makes sure that the mover runs, and resolves with the ways to it. Throws Obstacle while it does not run. Movers with
 * credentials of a former process are deleted.
 */
export async function ensureMover(parties: VolumeParties, wish: MoverWish): Promise<Mover> {
  const { side, namespace } = placeOf(parties, wish.role)
  const { move, signal } = parties
  const name = moverName(move.metadata.uid ?? '', wish)
  const pods = await moversIn(parties, wish.role)
  const other = pods.filter(({ metadata }) => metadata.name !== name)
  for (const pod of other) await deleteMover(side, pod, signal)
  const pod = pods.find(({ metadata }) => metadata.name === name)
  const { nodeName } = (pod?.['spec'] ?? {}) as { nodeName?: string }
  // The volume of an application that runs on another node now cannot be mounted by both.
  const isElsewhere = wish.node !== undefined && nodeName !== undefined && nodeName !== wish.node
  if (pod !== undefined && isElsewhere) await deleteMover(side, pod, signal)
  if (other.length > 0 || isElsewhere || pod?.metadata.deletionTimestamp !== undefined)
    throw new Obstacle('Starting', `a former mover in member cluster "${side.name}" ends`, { againSeconds: 1 })
  if (pod === undefined) await createMover(side, { ...wish, name, namespace, move: move.metadata.name }, signal)
  if (pod === undefined || !isReady(pod)) throw notReady(side, wish.role, pod)
  return {
    dial: (life) => side.dialPod({ namespace, name, port: moverPort }, life),
    direct: directWayTo(name, moverPort, pod['status']),
  }
}

function isReady(pod: KubeObject): boolean {
  const { conditions = [] } = (pod['status'] ?? {}) as PodStatus
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
}

function notReady({ name }: MemberSide, role: MoverRole, pod: KubeObject | undefined): Obstacle {
  const { conditions = [], containerStatuses = [] } = (pod?.['status'] ?? {}) as PodStatus
  const unscheduled = conditions.find(({ type, status }) => type === 'PodScheduled' && status === 'False')?.message
  const [container] = containerStatuses
  const { waiting } = container?.state ?? {}
  const ended = container?.lastState?.terminated
  const failed = ended && `it ended with code ${ended.exitCode ?? ''}: ${(ended.message ?? '').trim().slice(-400)}`
  const isStuck = waiting?.message !== undefined && waiting.reason !== 'CrashLoopBackOff'
  const why = unscheduled ?? failed ?? (isStuck ? `${waiting.reason ?? ''}: ${waiting.message ?? ''}` : undefined)
  const message = `the pod of the ${role} in member cluster "${name}" does not run yet`
  return new Obstacle(
    why === undefined ? 'Starting' : 'MoverNotReady',
    why === undefined ? message : `${message}: ${why}`,
    {
      againSeconds: 1,
    },
  )
}

/** All movers of the move on one side, of former processes, too. */
export async function moversIn(parties: VolumeParties, role: MoverRole): Promise<readonly KubeObject[]> {
  const { side, namespace } = placeOf(parties, role)
  const labelSelector = `${volumeMoveLabel}=${parties.move.metadata.name}`
  const { items } = await side.client.list<KubeObject>(gvrs.pods, { namespace, labelSelector, signal: parties.signal })
  return items
}

/** Deletes the movers of one side; true once nothing of them is left. */
export async function removeMovers(parties: VolumeParties, role: MoverRole): Promise<boolean> {
  const pods = await moversIn(parties, role)
  const { side, namespace } = placeOf(parties, role)
  for (const pod of pods) await deleteMover(side, pod, parties.signal)
  const labelSelector = `${volumeMoveLabel}=${parties.move.metadata.name}`
  const { signal } = parties
  const { items } = await side.client.list<KubeObject>(gvrs.secrets, {
    namespace,
    labelSelector,
    metadataOnly: true,
    signal,
  })
  for (const { metadata } of items)
    await side.client
      .delete(gvrs.secrets, { namespace, name: metadata.name ?? '' }, { signal })
      .catch(tolerate('NotFound'))
  return pods.length === 0
}

async function deleteMover(
  { client }: MemberSide,
  { metadata: { namespace = '', name = '', uid, deletionTimestamp } }: KubeObject,
  signal: AbortSignal,
): Promise<void> {
  if (deletionTimestamp !== undefined) return
  await client
    .delete(gvrs.pods, { namespace, name }, { ...(uid && { uid }), gracePeriodSeconds: 1, signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

/** Nobody can foresee the name: a pod of the tenant must not mount the Secret of this name. */
function moverName(moveUid: string, { role, credentials }: MoverWish): string {
  return `kcp-move-${contentHash([moveUid, credentials[role]['tls.key']])}`
}

interface MoverToCreate extends MoverWish {
  readonly name: string
  readonly namespace: string
  /** The name of the VolumeMove. */
  readonly move: string
}

async function createMover({ client }: MemberSide, mover: MoverToCreate, signal: AbortSignal): Promise<void> {
  const { name, namespace, role, credentials, move } = mover
  const labels = { 'app.kubernetes.io/name': 'kcp-mover', 'app.kubernetes.io/part-of': 'kcp', [volumeMoveLabel]: move }
  const metadata = { name, namespace, labels }
  const secret: KubeObject = { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { ...credentials[role] } }
  await client.create(gvrs.secrets, secret, { signal }).catch(tolerate('AlreadyExists'))
  const level = await levelOf(client, namespace, signal)
  const pod: KubeObject = { apiVersion: 'v1', kind: 'Pod', metadata, spec: podSpec(mover, level) }
  await client.create(gvrs.pods, pod, { signal }).catch(tolerate('AlreadyExists'))
}

/** The Pod Security level that the namespace enforces. */
async function levelOf(client: MemberSide['client'], name: string, signal: AbortSignal): Promise<string> {
  const namespace = await client.tryGet<KubeObject>(gvrs.namespaces, { name }, { signal })
  return namespace?.metadata.labels?.['pod-security.kubernetes.io/enforce'] ?? 'privileged'
}

/**
 * What a mover needs to read all files, and to write them with their owners, modes and attributes. Level baseline allows
 * these; at level restricted the mover runs without, and names what it cannot keep.
 */
const capabilities: Readonly<Record<MoverRole, readonly string[]>> = {
  source: ['DAC_OVERRIDE', 'FOWNER'],
  target: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'MKNOD', 'SETFCAP'],
}

function podSpec({ role, image, name, isBlock, claim, node }: MoverToCreate, level: string): object {
  const isRestricted = level === 'restricted'
  const path = isBlock ? '/dev/volume' : '/volume'
  const mount = isBlock
    ? { volumeDevices: [{ name: 'volume', devicePath: path }] }
    : { volumeMounts: [{ name: 'volume', mountPath: path, ...(role === 'source' && { readOnly: true }) }] }
  const credentials = { name: 'credentials', mountPath: '/credentials', readOnly: true }
  const container = {
    name: 'mover',
    image,
    args: [
      ...['mover', `--role=${role}`, `--volume=${path}`, ...(isBlock ? ['--block'] : [])],
      ...['--credentials=/credentials', `--listen=:${moverPort}`],
    ],
    ports: [{ name: 'mover', containerPort: moverPort }],
    resources: { requests: { cpu: '50m', memory: '96Mi' }, limits: { memory: '512Mi' } },
    // The last lines of its log tell why it ended.
    terminationMessagePolicy: 'FallbackToLogsOnError',
    readinessProbe: { tcpSocket: { port: moverPort }, periodSeconds: 1 },
    ...mount,
    volumeMounts: [...('volumeMounts' in mount ? mount.volumeMounts : []), credentials],
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      seccompProfile: { type: 'RuntimeDefault' },
      ...(isRestricted
        ? { runAsNonRoot: true, runAsUser: 65532, capabilities: { drop: ['ALL'] } }
        : { runAsUser: 0, runAsGroup: 0, capabilities: { drop: ['ALL'], add: [...capabilities[role]] } }),
    },
  }
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 1,
    tolerations: [{ operator: 'Exists' }],
    ...(node !== undefined && { affinity: onNode(node) }),
    containers: [container],
    volumes: [
      { name: 'volume', persistentVolumeClaim: { claimName: claim } },
      { name: 'credentials', secret: { secretName: name } },
    ],
  }
}

function onNode(node: string): object {
  const matchFields = [{ key: 'metadata.name', operator: 'In', values: [node] }]
  return {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields }] } },
  }
}

/** Pods that have the claim and have not ended, without those of the move. */
export async function usersOf(
  { source, move, signal }: VolumeParties,
  claim: string,
): Promise<readonly DeepReadonly<KubeObject>[]> {
  const { items } = await source.client.list<KubeObject>(gvrs.pods, { namespace: source.namespace, signal })
  return items.filter((pod) => {
    const { volumes = [] } = (pod['spec'] ?? {}) as { volumes?: { persistentVolumeClaim?: { claimName?: string } }[] }
    const { phase } = (pod['status'] ?? {}) as PodStatus
    if (pod.metadata.labels?.[volumeMoveLabel] === move.metadata.name) return false
    if (phase === 'Succeeded' || phase === 'Failed') return false
    return volumes.some(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName === claim)
  })
}
