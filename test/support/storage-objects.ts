// Claims, snapshots and pods for tests of storage.

import { randomBytes } from 'node:crypto'
import { type Cluster } from './cluster.ts'
import { shellImage } from './shell-image.ts'
import { snapshotClass } from './storage.ts'

export interface ClaimOptions {
  class: string
  /** 64Mi by default. */
  storage?: string
  accessMode?: 'ReadWriteOnce' | 'ReadWriteOncePod' | 'ReadWriteMany'
  block?: boolean
  /** Name of the VolumeSnapshot that the volume begins with. */
  snapshot?: string
  /** Name of a volume that exists. */
  volume?: string
}

export function claim(
  name: string,
  { accessMode = 'ReadWriteOnce', storage = '64Mi', ...options }: ClaimOptions,
): object {
  const dataSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: options.snapshot }
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: {
      storageClassName: options.class,
      accessModes: [accessMode],
      resources: { requests: { storage } },
      ...(options.block === true && { volumeMode: 'Block' }),
      ...(options.snapshot !== undefined && { dataSource }),
      ...(options.volume !== undefined && { volumeName: options.volume }),
    },
  }
}

export function snapshot(name: string, persistentVolumeClaimName: string): object {
  return {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { name },
    spec: { volumeSnapshotClassName: snapshotClass, source: { persistentVolumeClaimName } },
  }
}

export interface PodSpec {
  /** Claims, each mounted at `/NAME`. */
  claims?: readonly string[]
  /** Claims of block volumes, each at `/dev/NAME`. */
  devices?: readonly string[]
  script: string
  /** false: the pod is left running. */
  wait?: boolean
}

/** A pod that runs a script of the shell with claims. */
export function shellPod(name: string, { claims = [], devices = [], script }: PodSpec): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: 'main',
          image: shellImage,
          command: ['sh', '-c', script],
          volumeMounts: claims.map((claim) => ({ name: claim, mountPath: `/${claim}` })),
          volumeDevices: devices.map((claim) => ({ name: claim, devicePath: `/dev/${claim}` })),
        },
      ],
      volumes: [...claims, ...devices].map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
    },
  }
}

/** Runs a script in a pod with claims to its end, which must be a success, and returns its output. */
export async function runInPod(cluster: Pick<Cluster, 'kubectl'>, spec: PodSpec): Promise<string> {
  const name = `shell-${randomBytes(4).toString('hex')}`
  await cluster.kubectl(['create', '-f', '-'], { input: shellPod(name, spec) })
  const until = (condition: string): string[] => ['wait', `--for=jsonpath={.status.phase}=${condition}`, `pod/${name}`]
  if (spec.wait === false) {
    await cluster.kubectl([...until('Running'), '--timeout=60s'])
    return ''
  }
  const done = await cluster.kubectl([...until('Succeeded'), '--timeout=60s'], { expectCode: 'any' })
  if (done.code !== 0) {
    const { stdout } = await cluster.kubectl(['describe', 'pod', name], { expectCode: 'any' })
    const logs = await cluster.kubectl(['logs', name], { expectCode: 'any' })
    throw new Error(`the pod with "${spec.script}" did not succeed: ${logs.stdout}${logs.stderr}\n${stdout}`)
  }
  const { stdout } = await cluster.kubectl(['logs', name])
  await cluster.kubectl(['delete', 'pod', name, '--wait=true'])
  return stdout
}
