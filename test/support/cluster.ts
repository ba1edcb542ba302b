// A real Kubernetes cluster on this machine, for the length of a test.

import { cpSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { clusterAddresses } from './address-plan.ts'
import { type CertificateAuthority, type CertificateRequest } from './certificates.ts'
import { type CommandResult } from './command.ts'
import { startControlPlane, type ComponentName, type ServerVersion } from './control-plane.ts'
import { chooseProvider, type ContainerEngine } from './kind/engine.ts'
import { startKindCluster } from './kind/kind-cluster.ts'
import { kubectl } from './kubectl.ts'
import { ensureBridge, machineAddress } from './network.ts'
import { startNode, type ClusterNode } from './node.ts'
import { type ManagedProcess } from './process.ts'
import { acquireRun, type Run } from './run.ts'
import { writeRecord } from './run-record.ts'
import { ensureSystemPackages } from './system-packages.ts'

export interface ClusterOptions {
  /** Lower-case letters and digits; `host`, `east`. */
  name: string
  /**
   * 0: control plane only. 1: a node that runs real pods (see needsNodes); from kind where `engine` or
   * KCP_TEST_CLUSTERS says so.
   */
  nodes?: 0 | 1
  /** Default: true with a node, else false. */
  controllerManager?: boolean
  scheduler?: boolean
  /** etcd waits for the disk; false by default. */
  durable?: boolean
  /** The version of the API server alone. Default 1.34, which nodes need. */
  version?: ServerVersion
  /** Appended to a program's own flags. */
  flags?: Partial<Record<ComponentName | 'kubelet' | 'kube-proxy', readonly string[]>>
  /** The container engine for kind. Default: what KCP_TEST_CLUSTERS says, else none. */
  engine?: ContainerEngine | undefined
  /** Clusters of one run reach each other's pods. The run of this test process by default. */
  run?: Run
  signal?: AbortSignal
}

export interface Cluster extends AsyncDisposable {
  readonly name: string
  readonly run: Run
  readonly dir: string
  /** Path of the admin's kubeconfig, in system:masters. */
  readonly kubeconfig: string
  /** `https://ADDRESS:PORT`, reachable from this machine, the nodes and the pods of the run. */
  readonly server: string
  readonly ca: CertificateAuthority
  readonly frontProxyCa: CertificateAuthority
  /** Address for our servers that this cluster's API server, its node and its pods can reach. */
  readonly hostAddress: string
  readonly node: ClusterNode | undefined
  /** By program name, for killing and restarting them. */
  readonly processes: ReadonlyMap<string, ManagedProcess>
  kubectl(
    args: readonly string[],
    options?: { input?: string | object; expectCode?: number | 'any'; timeoutMs?: number; signal?: AbortSignal },
  ): Promise<CommandResult>
  /** Path of a kubeconfig for a user of this cluster; `organizations` are the groups. */
  kubeconfigFor(who: CertificateRequest): Promise<string>
  /** GET as admin: parsed JSON, or text. */
  get: (path: string, signal?: AbortSignal) => Promise<unknown>
  /** Ends all processes by pid and removes every trace. May be called twice. */
  stop(): Promise<void>
}

/** Boots a cluster and resolves when it is ready for use. A failed or aborted start leaves nothing behind. */
export async function startCluster({
  name,
  nodes = 0,
  controllerManager = nodes > 0,
  scheduler = nodes > 0,
  durable = false,
  flags = {},
  version = '1.34',
  run: givenRun,
  engine: givenEngine,
  signal,
}: ClusterOptions): Promise<Cluster> {
  if (!/^[a-z][a-z0-9]{0,15}$/.test(name)) throw new Error(`"${name}" is not a valid name of a test cluster`)
  const engine = nodes > 0 ? (givenEngine ?? (await engineOfTests())) : undefined
  const nodesImpossible = engine === undefined ? await ensureSystemPackages({ signal }) : undefined
  if (nodes > 0 && nodesImpossible !== undefined) throw new Error(`cluster "${name}": ${nodesImpossible}`)
  const { run, release } =
    givenRun === undefined ? await acquireRun({ signal }) : { run: givenRun, release: givenRun.hold() }
  const index = takeIndex(run, name)
  const addresses = clusterAddresses(run.record.slot, index)
  const dir = join(run.dir, name)
  let stopping: Promise<void> | undefined
  const stop = (): Promise<void> => (stopping ??= stopCluster(run, name, dir).finally(release))
  try {
    run.add({ type: 'directory', path: dir, scope: name })
    mkdirSync(join(dir, 'log'), { recursive: true })
    if (engine !== undefined) {
      const spec = { cluster: name, dir, run, engine, addresses, signal }
      return finished(await startKindCluster(spec), { name, run, dir, stop, processes: new Map() })
    }
    const hostAddress = nodesImpossible === undefined ? await ensureBridge(run) : machineAddress()
    const planeSpec = {
      name,
      dir,
      run,
      hostAddress,
      addresses,
      controllerManager,
      scheduler,
      durable,
      flags,
      version,
      signal,
    }
    const controlPlane = startControlPlane(planeSpec)
    const nodeStart =
      nodes > 0 ? startNode({ cluster: name, index, dir, run, addresses, flags, controlPlane, signal }) : undefined
    // Wait until both have settled before tearing anything down.
    await Promise.allSettled([controlPlane, nodeStart])
    const plane = await controlPlane
    const node = await nodeStart
    return finished({ ...plane, hostAddress, node }, { name, run, dir, stop, processes: plane.processes })
  } catch (error) {
    await stop()
    throw error
  }
}

/** With KCP_TEST_CLUSTERS=kind, clusters with nodes come from kind. */
async function engineOfTests(): Promise<ContainerEngine | undefined> {
  const provider = await chooseProvider(process.env.KCP_TEST_CLUSTERS, { fallback: 'built-in' })
  return provider.kind === 'kind' ? provider.engine : undefined
}

type Booted = Pick<Cluster, 'kubeconfig' | 'server' | 'ca' | 'frontProxyCa' | 'hostAddress' | 'node' | 'get'> & {
  kubeconfigFor(file: string, who: CertificateRequest): Promise<string>
}

/** The cluster as tests see it, entered into the record of its run. */
function finished(booted: Booted, place: Pick<Cluster, 'name' | 'run' | 'dir' | 'stop' | 'processes'>): Cluster {
  const { kubeconfig, server, ca, frontProxyCa, hostAddress, node, get } = booted
  const { name, run, dir, stop } = place
  run.record.clusters.push({ name, kubeconfig, node: node !== undefined })
  writeRecord(run.record)
  return {
    ...{ ...place, kubeconfig, server, ca, frontProxyCa, hostAddress, node, get },
    kubectl: (args, options) => kubectl(kubeconfig, args, options),
    kubeconfigFor: (who) =>
      booted.kubeconfigFor(join(dir, `${who.commonName.replaceAll(/[^\w.-]/g, '_')}.kubeconfig`), who),
    [Symbol.asyncDispose]: stop,
  }
}

const indexes = new WeakMap<Run, Map<string, number>>()

/** The index that decides a cluster's addresses in its run; a name keeps its index. */
function takeIndex(run: Run, name: string): number {
  const known = indexes.get(run) ?? new Map<string, number>()
  indexes.set(run, known)
  if (run.record.resources.some(({ scope }) => scope === name)) throw new Error(`run ${run.id} has a "${name}" already`)
  const index = known.get(name) ?? known.size
  known.set(name, index)
  return index
}

async function stopCluster(run: Run, name: string, dir: string): Promise<void> {
  const keep = process.env.KCP_KEEP_LOGS
  if (keep !== undefined && keep !== '' && existsSync(join(dir, 'log'))) {
    cpSync(join(dir, 'log'), join(keep, run.id, name), { recursive: true })
  }
  await run.undo(name)
}
