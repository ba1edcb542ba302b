// Storage for a test cluster: a CSI driver (test/programs/csi-driver) with the unmodified sidecars of other drivers, and
// a provisioner without CSI.

import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { repositoryRoot } from './cache-dir.ts'
import { type Cluster } from './cluster.ts'
import { runCommand } from './command.ts'
import { startProcess, type ManagedProcess } from './process.ts'
import { ensurePrograms } from './programs.ts'
import { type Run } from './run.ts'
import { importShell, shellImage } from './shell-image.ts'
import { waitFor } from './wait-for.ts'

export const csiDriver = 'csi.test.kcp.dev'

/**
 * Classes of the CSI driver. All volumes can be expanded, may be block devices and may be ReadWriteOncePod.
 * `late` is bound when a pod needs it, `immediate` at once; both are folders, allow ReadWriteMany and do not enforce
 * their capacity. `limited` is an own file system of exactly its capacity, bound late, and for one node only.
 */
export const storageClasses = { late: 'csi-late', immediate: 'csi-immediate', limited: 'csi-limited' } as const
export const snapshotClass = 'csi'
/** Class of `startLocalPath`: folders of a node without snapshots, expansion and attachments. */
export const localPathClass = 'local-path'

export interface StorageOptions {
  /** Volumes are kept in this backend, which other clusters share. Default: the cluster's own. */
  backend?: StorageBackend
  /** Bytes that all volumes of the backend together may have. */
  limit?: number
  signal?: AbortSignal
}

/** A folder with volumes and snapshots whose handles are valid in every cluster that uses it. */
export interface StorageBackend {
  readonly dir: string
}

export interface Storage {
  /** The folder with the volumes, each in `volumes/HANDLE/data` or `volumes/HANDLE/image`. */
  readonly dir: string
  /** By program name, for killing and restarting them. */
  readonly processes: ReadonlyMap<string, ManagedProcess>
}

type StorageCluster = Pick<Cluster, 'name' | 'run' | 'dir' | 'kubeconfig' | 'node' | 'kubectl' | 'get'>

/** A backend for several clusters of a run; ends with the run. */
export function sharedBackend(run: Run, name = 'storage'): StorageBackend {
  const dir = join(run.dir, name)
  run.add({ type: 'directory', path: dir, scope: name })
  mkdirSync(dir, { recursive: true })
  return { dir }
}

/** Starts the driver and its sidecars beside the kubelet, and resolves when volumes can be made. Ends with the cluster. */
export async function startStorage(cluster: StorageCluster, options: StorageOptions = {}): Promise<Storage> {
  const { backend, limit, signal } = options
  const nodeName = cluster.node?.name
  if (nodeName === undefined) throw new Error(`${cluster.name} has no node for volumes`)
  const sidecarNames = ['csi-provisioner', 'csi-attacher', 'csi-resizer', 'csi-snapshotter'] as const
  const programs = await ensurePrograms(['csi-driver', 'snapshot-controller', ...sidecarNames], { signal })
  const dir = backend?.dir ?? join(cluster.dir, 'volumes')
  const socket = join(cluster.dir, 'csi.sock')
  const processes = new Map<string, ManagedProcess>()
  const start = async (name: keyof typeof programs, args: string[], ready?: () => boolean): Promise<void> => {
    const spec = { name, command: programs[name], args, logFile: join(cluster.dir, 'log', `${name}.log`) }
    const place = { run: cluster.run, scope: cluster.name, signal }
    processes.set(name, await startProcess({ ...spec, ...(ready && { ready }) }, place))
  }
  const driverArgs = [
    ...['--name', csiDriver, '--node', nodeName, '--endpoint', socket, '--dir', dir],
    ...['--registry', join(cluster.dir, 'node', 'kubelet', 'plugins_registry')],
    ...(backend === undefined ? [] : ['--shared']),
    ...(limit === undefined ? [] : ['--limit', String(limit)]),
  ]
  await Promise.all([
    start('csi-driver', driverArgs, () => existsSync(socket)),
    cluster.kubectl(['apply', '--server-side', '--validate=false', '-k', await snapshotDefinitions(signal)], {
      ...(signal && { signal }),
    }),
  ])
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s'])
  await cluster.kubectl(['apply', '--validate=false', '-f', '-'], {
    input: { apiVersion: 'v1', kind: 'List', items: objects() },
  })
  const api = [`--kubeconfig=${cluster.kubeconfig}`, '--kube-api-qps=100', '--kube-api-burst=200']
  const common = [...api, `--csi-address=${socket}`]
  const groups = '--feature-gates=CSIVolumeGroupSnapshot=true'
  await Promise.all([
    start('csi-provisioner', [...common, '--retry-interval-start=200ms', '--retry-interval-max=5s']),
    start('csi-attacher', [...common, '--retry-interval-start=200ms', '--retry-interval-max=5s']),
    start('csi-resizer', [...common, '--retry-interval-start=200ms', '--retry-interval-max=5s']),
    start('csi-snapshotter', [...common, '--retry-interval-start=200ms', '--retry-interval-max=5s', groups]),
    start('snapshot-controller', [...api, '--retry-interval-start=200ms', '--retry-interval-max=5s', groups]),
  ])
  await waitFor(
    async () => {
      const node = (await cluster.get(`/apis/storage.k8s.io/v1/csinodes/${nodeName}`)) as CsiNode
      return node.spec.drivers?.some(({ name }) => name === csiDriver) === true
    },
    { what: `the kubelet of "${cluster.name}" to know the CSI driver`, deadlineMs: 60_000, ...(signal && { signal }) },
  )
  return { dir, processes }
}

interface CsiNode {
  spec: { drivers?: { name: string }[] }
}

/** The folder with the definitions of snapshots, from the module that the snapshotter is built from. */
async function snapshotDefinitions(signal: AbortSignal | undefined): Promise<string> {
  const module = 'github.com/kubernetes-csi/external-snapshotter/client/v8'
  const { stdout } = await runCommand('go', ['list', '-m', '-f', '{{.Dir}}', module], {
    cwd: join(repositoryRoot, 'test/programs/csi-sidecars'),
    env: { GOWORK: 'off', GOFLAGS: '-mod=readonly' },
    ...(signal && { signal }),
  })
  return join(stdout.trim(), 'config/crd')
}

function objects(): object[] {
  const storageClass = (name: string, volumeBindingMode: string, kind: string): object => ({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name },
    provisioner: csiDriver,
    parameters: { kind },
    volumeBindingMode,
    allowVolumeExpansion: true,
  })
  return [
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSIDriver',
      metadata: { name: csiDriver },
      spec: { attachRequired: true, podInfoOnMount: false, fsGroupPolicy: 'File' },
    },
    storageClass(storageClasses.late, 'WaitForFirstConsumer', 'folder'),
    storageClass(storageClasses.immediate, 'Immediate', 'folder'),
    storageClass(storageClasses.limited, 'WaitForFirstConsumer', 'image'),
    ...[
      ['snapshot.storage.k8s.io/v1', 'VolumeSnapshotClass'],
      ['groupsnapshot.storage.k8s.io/v1', 'VolumeGroupSnapshotClass'],
    ].map(([apiVersion, kind]) => ({
      apiVersion,
      kind,
      metadata: { name: snapshotClass },
      driver: csiDriver,
      deletionPolicy: 'Delete',
    })),
  ]
}

/**
 * Starts rancher's local-path-provisioner, which is no CSI driver: it ignores a claim's data source and ties volumes to
 * their node. Ends with the cluster.
 */
export async function startLocalPath(cluster: StorageCluster, signal?: AbortSignal): Promise<ManagedProcess> {
  const namespace = 'local-path-storage'
  const [programs] = await Promise.all([
    ensurePrograms(['local-path-provisioner'], { signal }),
    importShell(cluster),
    cluster.kubectl(['create', 'namespace', namespace]),
  ])
  const paths = [join(cluster.dir, 'local-path')]
  const config = { nodePathMap: [{ node: 'DEFAULT_PATH_FOR_NON_LISTED_NODES', paths }] }
  const helper = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'helper-pod' },
    spec: { containers: [{ name: 'helper-pod', image: shellImage, imagePullPolicy: 'IfNotPresent' }] },
  }
  const data = {
    'config.json': JSON.stringify(config),
    setup: '#!/bin/sh\nset -eu\nmkdir -m 0777 -p "$VOL_DIR"\n',
    teardown: '#!/bin/sh\nset -eu\nrm -rf "$VOL_DIR"\n',
    'helperPod.yaml': JSON.stringify(helper),
  }
  const configFile = join(cluster.dir, 'local-path.json')
  const helperFile = join(cluster.dir, 'local-path-helper.json')
  writeFileSync(configFile, data['config.json'])
  writeFileSync(helperFile, data['helperPod.yaml'])
  const items = [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'local-path-config', namespace }, data },
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: localPathClass },
      provisioner: 'rancher.io/local-path',
      volumeBindingMode: 'WaitForFirstConsumer',
    },
  ]
  await cluster.kubectl(['apply', '--validate=false', '-f', '-'], { input: { apiVersion: 'v1', kind: 'List', items } })
  return await startProcess(
    {
      name: 'local-path-provisioner',
      command: programs['local-path-provisioner'],
      args: [
        ...['start', '--kubeconfig', cluster.kubeconfig, '--provisioner-name', 'rancher.io/local-path'],
        ...['--namespace', namespace, '--configmap-name', 'local-path-config', '--config', configFile],
        ...['--helper-image', shellImage, '--helper-pod-file', helperFile, '--service-account-name', 'default'],
      ],
      logFile: join(cluster.dir, 'log', 'local-path-provisioner.log'),
    },
    { run: cluster.run, scope: cluster.name, signal },
  )
}
