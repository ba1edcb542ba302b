// MultiKueue finds member `east` by its ClusterProfile, and works there with tokens of `kcp access`: Kueue's own
// controllers, unchanged, with logical cluster `root` as their manager cluster.
import { expect } from 'chai'
import { join } from 'node:path'
import { startInstance, type KcpInstance } from '#test/integration/kcp-instance.ts'
import {
  ensurePrograms,
  kcpProgram,
  kubectl,
  repositoryRoot,
  runCommand,
  runKcp,
  startCluster,
  startProcess,
  waitFor,
  type Cluster,
  type CommandResult,
} from '#test/support/index.ts'

const within = { deadlineMs: 120_000, intervalMs: 500 }

describe('MultiKueue', function () {
  this.timeout(60 * 60_000) // the first build compiles all of Kueue
  const stack = new AsyncDisposableStack()
  let kcp: KcpInstance
  let east: Cluster

  before(async () => {
    const { multikueue } = await ensurePrograms(['multikueue'])
    ;[kcp, east] = await Promise.all([startInstance(['--cluster-profiles']), startCluster({ name: 'east' })])
    stack.use(kcp)
    stack.use(east)
    const inWorkers = ['clusterqueues', 'localqueues', 'workloads']
    const inManager = [...inWorkers, 'admissionchecks', 'multikueueclusters', 'multikueueconfigs', 'resourceflavors']
    const definitions = await definitionsOfKueue()
    const files = (names: readonly string[]): string[] =>
      names.flatMap((name) => ['-f', join(definitions, `kueue.x-k8s.io_${name}.yaml`)])
    await admin('create', ...files(inManager), '-f', join(repositoryRoot, 'test/integration/cluster-profile-crd.yaml'))
    await inEast('create', ...files(inWorkers))
    await runKcp(['member', 'join', 'east', '--kubeconfig', east.kubeconfig, '--root-dir', kcp.rootDir])
    await openMember()
    const args = ['kcp-system', kcpProgram, 'access', '--kubeconfig', kcp.admin.kubeconfig]
    const env = { KUBECONFIG: kcp.admin.kubeconfig, PATH: process.env['PATH'] }
    stack.use(await startProcess({ name: 'multikueue', command: multikueue, args, env }))
  })
  after(() => stack.disposeAsync())

  const admin = (...args: string[]): Promise<CommandResult> => kcp.admin.kubectl(args)
  const inEast = (...args: string[]): Promise<CommandResult> => kubectl(east.kubeconfig, args)

  async function definitionsOfKueue(): Promise<string> {
    const { stdout } = await runCommand('go', ['list', '-m', '-f', '{{.Dir}}', 'sigs.k8s.io/kueue'], {
      cwd: join(repositoryRoot, 'test/programs/multikueue'),
    })
    return join(stdout.trim(), 'config/components/crd/bases')
  }

  /** Others work in the member as ServiceAccount `kueue`, which has rights on Kueue's objects only. */
  async function openMember(): Promise<void> {
    const account = { namespace: 'default', name: 'kueue' }
    await inEast('create', 'serviceaccount', account.name, '-n', account.namespace)
    const resources = 'workloads.kueue.x-k8s.io,workloads.kueue.x-k8s.io/status,localqueues.kueue.x-k8s.io'
    await inEast('create', 'clusterrole', 'kueue', '--verb=*', `--resource=${resources}`)
    await inEast('create', 'clusterrolebinding', 'kueue', '--clusterrole=kueue', '--serviceaccount=default:kueue')
    const impersonate = ['--verb=impersonate', '--resource=serviceaccounts', '--resource-name=kueue']
    await inEast('create', 'role', 'kcp-access', '-n', 'default', ...impersonate)
    const to = ['--role=kcp-access', '--serviceaccount=kcp-system:kcp-syncer']
    await inEast('create', 'rolebinding', 'kcp-access', '-n', 'default', ...to)
    await admin(
      'patch',
      'mc/east',
      '--type=merge',
      '-p',
      JSON.stringify({ spec: { access: { serviceAccountRef: account } } }),
    )
  }

  it('connects to the worker of a ClusterProfile', async () => {
    const metadata = { name: 'east' }
    const spec = { clusterSource: { clusterProfileRef: { name: 'east' } } }
    const worker = { apiVersion: 'kueue.x-k8s.io/v1beta2', kind: 'MultiKueueCluster', metadata, spec }
    await kcp.admin.kubectl(['create', '-f', '-'], { input: worker })
    const path = 'jsonpath={.status.conditions[?(@.type=="Active")].status} {.status.conditions[*].message}'
    let told = ''
    const isActive = async (): Promise<boolean> => {
      told = (await admin('get', 'multikueuecluster', 'east', '-o', path)).stdout
      return told.startsWith('True')
    }
    await waitFor(isActive, { what: 'MultiKueue to connect', ...within }).catch(() => expect(told).to.equal('True'))
  })
})
