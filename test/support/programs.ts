// The real programs that tests run, built from the pinned modules in test/programs and cached outside the checkout.

import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { arch, platform } from 'node:os'
import { join } from 'node:path'
import { cacheDir, repositoryRoot } from './cache-dir.ts'
import { runCommand } from './command.ts'
import { withFileLock } from './file-lock.ts'

const kubernetesVersion = 'v1.34.3'

interface Source {
  /** Folder in test/programs, or `clients/go`, with the go.mod and go.sum that pin everything. */
  module:
    | 'kubernetes'
    | 'kubernetes-1.30'
    | 'kubernetes-1.31'
    | 'etcd'
    | 'coredns'
    | 'helm'
    | 'helm-4'
    | 'kwok'
    | 'kind'
    | 'cel'
    | 'kustomize-controller'
    | 'gitops-agent'
    | 'prometheus'
    | 'prometheus-operator'
    | 'kyverno'
    | 'gatekeeper'
    | 'gateway-api'
    | 'sample-apiserver'
    | 'envtest'
    | 'skipper'
    | 'metrics-server'
    | 'stand-in'
    | 'web-load'
    | 'kcp-provider'
    | 'cluster-inventory'
    | 'multikueue'
    | 'csi-driver'
    | 'csi-sidecars'
    | 'kubectl-kcp'
    | 'local-path-provisioner'
    | 'zitadel-oidc'
    | 'authentication-config'
    | 'object-store'
    | 'clients/go'
  package: string
  /** `test` compiles the package's tests into a program (the conformance suite). */
  build?: 'test'
  /** Build tags. */
  tags?: string
}

const sources = {
  kubectl: { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kubectl' },
  'kubectl-convert': { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kubectl-convert' },
  'kube-apiserver': { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kube-apiserver' },
  'kube-apiserver-1.30': { module: 'kubernetes-1.30', package: 'k8s.io/kubernetes/cmd/kube-apiserver' },
  'kube-apiserver-1.31': { module: 'kubernetes-1.31', package: 'k8s.io/kubernetes/cmd/kube-apiserver' },
  'kube-controller-manager': { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kube-controller-manager' },
  'kube-scheduler': { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kube-scheduler' },
  'kube-proxy': { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kube-proxy' },
  kubelet: { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kubelet' },
  agnhost: { module: 'kubernetes', package: 'k8s.io/kubernetes/test/images/agnhost' },
  'e2e.test': { module: 'kubernetes', package: 'k8s.io/kubernetes/test/e2e', build: 'test' },
  etcd: { module: 'etcd', package: 'go.etcd.io/etcd/server/v3' },
  etcdctl: { module: 'etcd', package: 'go.etcd.io/etcd/etcdctl/v3' },
  coredns: { module: 'coredns', package: 'github.com/coredns/coredns' },
  helm: { module: 'helm', package: 'helm.sh/helm/v3/cmd/helm' },
  'helm-4': { module: 'helm-4', package: 'helm.sh/helm/v4/cmd/helm' },
  kwok: { module: 'kwok', package: 'sigs.k8s.io/kwok/cmd/kwok' },
  kind: { module: 'kind', package: 'sigs.k8s.io/kind' },
  'kustomize-controller': { module: 'kustomize-controller', package: 'github.com/fluxcd/kustomize-controller' },
  'gitops-agent': { module: 'gitops-agent', package: 'github.com/argoproj/gitops-engine/agent' },
  promtool: { module: 'prometheus', package: 'github.com/prometheus/prometheus/cmd/promtool' },
  'prometheus-operator': {
    module: 'prometheus-operator',
    package: 'github.com/prometheus-operator/prometheus-operator/cmd/operator',
  },
  kyverno: { module: 'kyverno', package: 'github.com/kyverno/kyverno/cmd/kyverno' },
  'kyverno-background': { module: 'kyverno', package: 'github.com/kyverno/kyverno/cmd/background-controller' },
  'gateway-api-standard': {
    module: 'gateway-api',
    package: 'sigs.k8s.io/gateway-api/pkg/test/cel',
    build: 'test',
    tags: 'standard',
  },
  'gateway-api-experimental': {
    module: 'gateway-api',
    package: 'sigs.k8s.io/gateway-api/pkg/test/cel',
    build: 'test',
    tags: 'experimental',
  },
  gatekeeper: { module: 'gatekeeper', package: 'github.com/open-policy-agent/gatekeeper/v3' },
  cel: { module: 'cel', package: '.' },
  'sample-apiserver': { module: 'sample-apiserver', package: 'k8s.io/sample-apiserver' },
  skipper: { module: 'skipper', package: 'github.com/zalando/skipper/cmd/skipper' },
  'metrics-server': { module: 'metrics-server', package: 'sigs.k8s.io/metrics-server/cmd/metrics-server' },
  'controller-runtime-client': {
    module: 'envtest',
    package: 'sigs.k8s.io/controller-runtime/pkg/client',
    build: 'test',
  },
  'controller-runtime-envtest': {
    module: 'envtest',
    package: 'sigs.k8s.io/controller-runtime/pkg/envtest',
    build: 'test',
  },
  'flux-ssa': { module: 'envtest', package: 'github.com/fluxcd/pkg/ssa', build: 'test' },
  'cert-controller': {
    module: 'envtest',
    package: 'github.com/open-policy-agent/cert-controller/pkg/rotator',
    build: 'test',
  },
  'stand-in': { module: 'stand-in', package: '.' },
  'web-load': { module: 'web-load', package: '.' },
  'kcp-provider': { module: 'kcp-provider', package: '.' },
  'cluster-inventory': { module: 'cluster-inventory', package: '.' },
  multikueue: { module: 'multikueue', package: '.' },
  'kubectl-kcp': { module: 'kubectl-kcp', package: '.' },
  'csi-driver': { module: 'csi-driver', package: '.' },
  'csi-sanity': { module: 'csi-sidecars', package: 'github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity' },
  'csi-provisioner': {
    module: 'csi-sidecars',
    package: 'github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner',
  },
  'csi-attacher': {
    module: 'csi-sidecars',
    package: 'github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher',
  },
  'csi-resizer': { module: 'csi-sidecars', package: 'github.com/kubernetes-csi/external-resizer/v2/cmd/csi-resizer' },
  'csi-snapshotter': {
    module: 'csi-sidecars',
    package: 'github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter',
  },
  'snapshot-controller': {
    module: 'csi-sidecars',
    package: 'github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller',
  },
  'local-path-provisioner': {
    module: 'local-path-provisioner',
    package: 'github.com/rancher/local-path-provisioner',
  },
  'authentication-config': { module: 'authentication-config', package: '.' },
  'zitadel-oidc': { module: 'zitadel-oidc', package: '.' },
  versitygw: { module: 'object-store', package: 'github.com/versity/versitygw/cmd/versitygw' },
  'config-map-per-widget': { module: 'clients/go', package: './examples/config-map-per-widget' },
} as const satisfies Record<string, Source>

export type ProgramName = keyof typeof sources

/** The programs that every host and member needs. */
export const clusterPrograms = [
  'kubectl',
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
  'agnhost',
  'coredns',
] as const satisfies readonly ProgramName[]

export const programNames = Object.keys(sources) as ProgramName[]

const version = 'k8s.io/component-base/version'
const linkerFlags: Partial<Record<Source['module'], string>> = {
  kubernetes: `-s -w -X ${version}.gitVersion=${kubernetesVersion} -X ${version}.gitMajor=1 -X ${version}.gitMinor=34`,
  'kubernetes-1.30': `-s -w -X ${version}.gitVersion=v1.30.14 -X ${version}.gitMajor=1 -X ${version}.gitMinor=30`,
  'kubernetes-1.31': `-s -w -X ${version}.gitVersion=v1.31.4 -X ${version}.gitMajor=1 -X ${version}.gitMinor=31`,
}
/** For the other modules: leaves out symbols, to keep the cache small. */
const defaultLinkerFlags = '-s -w'

export interface EnsureProgramsOptions {
  signal?: AbortSignal | undefined
  /** Gets progress lines; standard error by default. */
  log?: (line: string) => void
}

/**
 * Paths of the requested programs. Builds those that are not cached, which takes minutes with a cold Go build cache;
 * concurrent runs build once. Rejects with the compiler's message when a build fails, or with signal.reason.
 */
export async function ensurePrograms<N extends ProgramName>(
  names: readonly N[],
  { signal, log = (line) => void process.stderr.write(`${line}\n`) }: EnsureProgramsOptions = {},
): Promise<Record<N, string>> {
  const missing = (): N[] => names.filter((name) => !existsSync(programPath(name)))
  if (missing().length > 0) {
    await withFileLock(
      join(cacheDir(), 'programs', '.lock'),
      async () => {
        const todo = missing()
        for (const [index, name] of todo.entries()) {
          log(`building ${name} (${index + 1} of ${todo.length}) ...`)
          const started = performance.now()
          await build(name, signal)
          log(`building ${name}: done in ${((performance.now() - started) / 1000).toFixed(1)} s`)
        }
      },
      { signal, onWait: (pid) => log(`waiting for process ${pid}, which is building programs ...`) },
    )
  }
  return Object.fromEntries(names.map((name) => [name, programPath(name)])) as Record<N, string>
}

/** Path of a program, built or not: the folder name depends on the pinned versions and the flags. */
export function programPath(name: ProgramName): string {
  const { module } = sources[name]
  const hash = createHash('sha256')
  // Some modules contain the program itself, so its source is part of the hash, too.
  const own = module === 'clients/go' || module === 'csi-driver' ? goFiles(moduleDir(module)) : ['main.go']
  const files = ['go.mod', 'go.sum', ...own].map((file) => join(moduleDir(module), file))
  for (const file of files.filter((one) => existsSync(one))) hash.update(readFileSync(file))
  hash.update(JSON.stringify([linkerFlags[module] ?? defaultLinkerFlags, platform(), arch()]))
  return join(cacheDir(), 'programs', `${module.replace('/', '-')}-${hash.digest('hex').slice(0, 16)}`, name)
}

const moduleDir = (module: Source['module']): string =>
  module === 'clients/go' ? join(repositoryRoot, module) : join(repositoryRoot, 'test', 'programs', module)

function goFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.go'))
    .sort()
}

async function build(name: ProgramName, signal: AbortSignal | undefined): Promise<void> {
  const source: Source = sources[name]
  const target = programPath(name)
  const dir = join(target, '..')
  mkdirSync(dir, { recursive: true })
  const work = mkdtempSync(join(dir, '.building-'))
  try {
    const output = join(work, name)
    // Without vet, which otherwise reads every package of the suite once more.
    const verb = source.build === 'test' ? ['test', '-c', '-vet=off'] : ['build']
    const flags = linkerFlags[source.module] ?? defaultLinkerFlags
    const tags = source.tags === undefined ? [] : ['-tags', source.tags]
    const args = [...verb, ...tags, '-trimpath', '-ldflags', flags, '-o', output, source.package]
    await runCommand('go', args, {
      cwd: moduleDir(source.module),
      env: { CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '-mod=readonly -buildvcs=false' },
      timeoutMs: 60 * 60_000,
      signal,
    })
    renameSync(output, target)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
