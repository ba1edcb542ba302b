// The test harness: boots real clusters, real programs and our own processes, and leaves nothing behind.

export { ensureBrowser } from './browser.ts'
export { type Cluster, type ClusterOptions, startCluster } from './cluster.ts'
export { CertificateAuthority, type CertificateRequest, type KeyPair } from './certificates.ts'
export { cacheDir, repositoryRoot } from './cache-dir.ts'
export { runCommand, type CommandOptions, type CommandResult } from './command.ts'
export { startEtcd, type Etcd, type EtcdOptions } from './etcd.ts'
export { freePort } from './free-port.ts'
export { describeInLongRun, isLongRun, itInLongRun, rounds } from './long-run.ts'
export { writeImageArchive, type ImageSpec } from './image-archive.ts'
export { hostService, type HostServiceSpec } from './host-service.ts'
export { kcpProgram, runKcp, startKcp, type KcpOptions } from './kcp.ts'
export { writeKubeconfig } from './kubeconfig.ts'
export { kubectl, kubectlEnvironment } from './kubectl.ts'
export { installMetricsServer } from './metrics-server.ts'
export { needsLoopDevices, needsNodes, needsTools, skipUnless } from './needs.ts'
export { agnhostImage, corednsImage, pauseImage } from './node-images.ts'
export { type ClusterNode } from './node.ts'
export { claim, runInPod, shellPod, snapshot, type ClaimOptions, type PodSpec } from './storage-objects.ts'
export { importShell, shellImage } from './shell-image.ts'
export {
  csiDriver,
  localPathClass,
  sharedBackend,
  snapshotClass,
  startLocalPath,
  startStorage,
  storageClasses,
  type Storage,
  type StorageBackend,
  type StorageOptions,
} from './storage.ts'
export { startObjectStore, type ObjectStore } from './object-store.ts'
export { systemProgram } from './system-packages.ts'
export { startPostgres, type Postgres } from './postgres.ts'
export { startStoreServer, type StoreServer, type StoreServerKind } from './store-server.ts'
export { type ManagedProcess, type ProcessSpec, startProcess } from './process.ts'
export { programLayer } from './program-layer.ts'
export { clusterPrograms, ensurePrograms, programNames, type ProgramName } from './programs.ts'
export { acquireRun, newRun, Run, sweepRuns } from './run.ts'
export { ensureSystemPackages } from './system-packages.ts'
export { waitFor } from './wait-for.ts'
export { type TarEntry } from './tar.ts'
