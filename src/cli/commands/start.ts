// `kcp start`: everything in one process on an embedded store.
import { createLogger, createMetrics, type Logger, type LogLevel } from '#telemetry/index.ts'
import { placeOf } from '#cli/roles/server-store.ts'
import { serverStoreOf, type StoreFlags } from './store-flags.ts'
import {
  type AuditFlags,
  auditOf,
  type ConsoleFlags,
  consoleOf,
  type EgressFlags,
  egressOf,
  openTracing,
  type SignInFlags,
  type StorageFlags,
  signInOf,
  storageOf,
  type TracingFlags,
  type VolumeMoveFlags,
  volumeMovesOf,
} from './flags.ts'
import { aborted, processSignal, untilStopped } from '#cli/process/process-signal.ts'
import { UsageError } from '#cli/process/exit-error.ts'
import { settleMemory } from '#cli/process/settle-memory.ts'
import { startEmbedded, startOperatorBeside, type EmbeddedOptions } from '#cli/roles/embedded.ts'
import type { Worker } from '#cli/workers/index.ts'

interface Flags
  extends AuditFlags, ConsoleFlags, EgressFlags, StoreFlags, SignInFlags, StorageFlags, TracingFlags, VolumeMoveFlags {
  /** Absent only with `demo`: a temporary directory. */
  readonly rootDir?: string
  readonly demo?: boolean
  readonly port: number
  readonly bindAddress: string
  readonly advertiseAddress?: string
  readonly workers: number
  readonly metricsClientSecret?: string
  readonly gatewayImage?: string
  readonly snapshotDirectory?: string
  readonly clusterProfiles?: boolean
  readonly logLevel: LogLevel
}

/** Runs the command. */
export async function run(flags: Flags): Promise<void> {
  if (flags.workers > 1) await runWorkers(flags)
  else await serve(flags, processSignal())
}

/** Runs the server or the operator if a supervisor has started this process; else supervises both. */
async function runWorkers(flags: Flags): Promise<void> {
  const { workers: count, logLevel: level, port, bindAddress: host } = flags
  if (flags.demo === true) throw new UsageError('--demo has one worker')
  // Loaded late: one worker pays nothing.
  const { freePort, supervise, tryWorker } = await import('#cli/workers/index.ts')
  const worker = tryWorker()
  if (worker?.index === operatorIndex) await operate(flags, worker)
  else if (worker !== undefined) await serve(flags, worker.signal, worker)
  else {
    const ready = (says: string): void => console.log(says)
    const known = port === 0 ? await freePort({ port, host }) : port
    const reopens = auditOf(flags).audit?.file !== undefined
    await supervise({ count, port: known, log: createLogger({ level }), signal: processSignal(), reopens, ready })
  }
}

/** The number of the worker that is the operator. */
const operatorIndex = 2

async function serve(given: Flags, signal: AbortSignal, worker?: Worker): Promise<void> {
  const started = performance.now()
  await using place = await openPlace(given)
  const flags = { ...given, ...place }
  // In a demo, members are lost on purpose, and the terminal has other things to show.
  const log = createLogger({ level: flags.demo === true && flags.logLevel === 'warn' ? 'error' : flags.logLevel })
  const own = createMetrics()
  const metrics = worker?.shared(own) ?? own
  await using _tracing = await openTracing(flags, { serviceName: 'kcp', metrics, log })
  const { rootDir } = flags
  const stopping = new AbortController()
  await using kcp = await startEmbedded({
    ...optionsOf(flags, { metrics, log, signal: stopping.signal }),
    ...(worker && { operatorElsewhere: worker.siblings }),
  })
  try {
    if (flags.demo === true) await runDemo({ rootDir, started, log }, { signal, failed: kcp.failed })
    else {
      settleMemory()
      const { serverStore } = serverStoreOf(flags)
      const where = serverStore === undefined ? `in ${rootDir}` : `${placeOf(serverStore)}, its keys in ${rootDir}`
      const says = welcome(kcp.adminKubeconfig, { rootDir, where, elapsedMs: performance.now() - started })
      if (worker === undefined) console.log(says)
      else worker.ready(says, kcp)
      await Promise.race([aborted(signal), kcp.failed])
    }
  } finally {
    stopping.abort(signal.reason)
  }
}

/** Runs the operator beside the server, which serves already. */
async function operate(flags: Flags, worker: Worker): Promise<void> {
  const { signal } = worker
  const log = createLogger({ level: flags.logLevel }).with({ worker: worker.index })
  const metrics = worker.shared(createMetrics())
  await using _tracing = await openTracing(flags, { serviceName: 'kcp-operator', metrics, log })
  const stopping = new AbortController()
  const place = { ...flags, rootDir: flags.rootDir ?? '' }
  await untilStopped(signal, async () => {
    await using operator = await startOperatorBeside(optionsOf(place, { metrics, log, signal: stopping.signal }))
    settleMemory()
    worker.ready('')
    try {
      await Promise.race([aborted(signal), operator.done])
    } finally {
      stopping.abort(signal.reason)
    }
  })
}

function optionsOf(
  flags: Flags & { readonly rootDir: string },
  parts: Pick<EmbeddedOptions, 'metrics' | 'log' | 'signal'>,
): EmbeddedOptions {
  const { rootDir, port, bindAddress } = flags
  return {
    rootDir,
    port,
    bindAddress,
    advertiseAddress: flags.advertiseAddress ?? (bindAddress === '0.0.0.0' ? '127.0.0.1' : bindAddress),
    ...auditOf(flags),
    ...serverStoreOf(flags),
    ...signInOf(flags),
    ...consoleOf(flags),
    ...storageOf(flags),
    ...egressOf(flags),
    ...(flags.metricsClientSecret !== undefined && { metricsClientSecret: flags.metricsClientSecret }),
    ...(flags.gatewayImage !== undefined && { gatewayImage: flags.gatewayImage }),
    ...(flags.snapshotDirectory !== undefined && { snapshotDirectory: flags.snapshotDirectory }),
    ...volumeMovesOf(flags),
    ...(flags.clusterProfiles !== undefined && { clusterProfiles: flags.clusterProfiles }),
    ...parts,
  }
}

interface Place extends AsyncDisposable {
  readonly rootDir: string
  readonly port: number
}

/** The directory and the port. A demo has a directory of its own, which goes with it, and any port that is free. */
async function openPlace({ rootDir, port, demo = false }: Flags): Promise<Place> {
  const kept = { [Symbol.asyncDispose]: () => Promise.resolve() }
  if (!demo) return { rootDir: rootDir ?? '', port, ...kept }
  const { temporaryDirectory, usablePort } = await import('./demo-place.ts')
  const usable = await usablePort(port)
  return rootDir === undefined ? { ...(await temporaryDirectory()), port: usable } : { rootDir, port: usable, ...kept }
}

interface DemoStart {
  readonly rootDir: string
  readonly started: number
  readonly log: Logger
}

async function runDemo(
  { rootDir, started, log }: DemoStart,
  { signal, failed }: { readonly signal: AbortSignal; readonly failed: Promise<never> },
): Promise<void> {
  const { runDemo: run } = await import('./demo.ts')
  const shown = run({ rootDir, startedMs: started, log, signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  await Promise.race([shown, failed])
}

interface Start {
  readonly rootDir: string
  /** Where the data are, in words. */
  readonly where: string
  readonly elapsedMs: number
}

function welcome(kubeconfig: string, { rootDir, where, elapsedMs }: Start): string {
  return `kcp is ready after ${(elapsedMs / 1000).toFixed(2)} s. Try:

  bin/kcp create acme --root-dir ${rootDir}
  bin/kcp connect acme --root-dir ${rootDir} -- kubectl get namespaces

As the admin of all:             export KUBECONFIG=${kubeconfig}
Register a cluster to run pods:  bin/kcp member join NAME --kubeconfig FILE --root-dir ${rootDir}
Stop with Ctrl-C; the data stays ${where}.`
}
