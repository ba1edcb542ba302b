// Uses a logical cluster as a plain cluster: Kubernetes' own controllers, its scheduler and nodes simulated by kwok run
// workloads in it and log no unexpected errors.
import { expect } from 'chai'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isRecord, textAt } from '#test/integration/json.ts'
import { startInstance, type Tenant } from '#test/integration/kcp-instance.ts'
import { waitFor } from '#test/support/index.ts'
import { startWorkloadControllers, type WorkloadControllers } from './workload-controllers.ts'

const containers = [{ name: 'c', image: 'registry.example/app:1', resources: { requests: { cpu: '100m' } } }]
const pods = (app: string, spec: object = {}): object => ({
  metadata: { labels: { app } },
  spec: { containers, ...spec },
})
const workload = (apiVersion: string, kind: string, name: string, spec: object): object => ({
  apiVersion,
  kind,
  metadata: { name },
  spec,
})
const selector = (app: string): object => ({ matchLabels: { app } })

/**
 * Errors that these programs log in a real cluster too: no metrics are served; a cache lags for a moment; a pod is
 * deleted while the scheduler binds it.
 */
const expected =
  /unable to get metrics for resource|the object has been modified|sync .* failed with .* not found|pods \\?"[^"]+" not found/
/** What they log where the machine has no time for them for seconds: it says nothing about the answers they get. */
const slow = /context deadline exceeded|Client\.Timeout|timed out|failed to renew lease|http2: client connection lost/

describe("Kubernetes' own controllers in a logical cluster", function () {
  this.timeout(5 * 60_000)
  const stack = new AsyncDisposableStack()
  let tenant: Tenant
  let controllers: WorkloadControllers

  before(async () => {
    const kcp = stack.use(await startInstance())
    tenant = await kcp.tenant('workloads', { podSecurity: 'privileged' })
    const dir = mkdtempSync(join(tmpdir(), 'kcp-workloads-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    const { name, kubeconfig } = tenant
    controllers = stack.use(await startWorkloadControllers({ kubeconfig, label: name, dir, nodes: 2 }))
  })
  after(() => stack.disposeAsync())

  const kubectl = async (...args: string[]): Promise<string> =>
    (await tenant.kubectl(args, { timeoutMs: 120_000 })).stdout
  const apply = async (...objects: object[]): Promise<void> => {
    await tenant.kubectl(['apply', '-f', '-'], { input: { apiVersion: 'v1', kind: 'List', items: objects } })
  }
  const rollout = (what: string): Promise<string> => kubectl('rollout', 'status', what, '--timeout=60s')
  const jsonpath = (what: string, path: string): Promise<string> =>
    kubectl('get', ...what.split(' '), '-o', `jsonpath=${path}`)

  it('roll a Deployment out, scale it, change it and roll it back', async () => {
    await apply(
      workload('apps/v1', 'Deployment', 'web', { replicas: 2, selector: selector('web'), template: pods('web') }),
    )
    await rollout('deploy/web')
    await kubectl('scale', 'deploy/web', '--replicas=4')
    await rollout('deploy/web')
    expect(await jsonpath('deploy web', '{.status.availableReplicas}')).to.equal('4')
    await kubectl('set', 'image', 'deploy/web', 'c=registry.example/app:2')
    await rollout('deploy/web')
    await kubectl('rollout', 'undo', 'deploy/web')
    await rollout('deploy/web')
    expect(await jsonpath('deploy web', '{.spec.template.spec.containers[0].image}')).to.equal('registry.example/app:1')
    expect(await kubectl('rollout', 'history', 'deploy/web')).to.match(/\n2 +.*\n3 +/)
    // The controller writes it through the status subresource, a moment after the rollout.
    const revision = String.raw`{.metadata.annotations.deployment\.kubernetes\.io/revision}`
    await waitFor(async () => (await jsonpath('deploy web', revision)) === '3', {
      what: 'revision 3 of the Deployment',
      deadlineMs: 60_000,
    })
  })

  it('find the pods of a Service', async () => {
    await apply(workload('v1', 'Service', 'web', { selector: { app: 'web' }, ports: [{ port: 80 }] }))
    const addresses = async (): Promise<string[]> => {
      const slices = await jsonpath(
        'endpointslices -l kubernetes.io/service-name=web',
        '{.items[*].endpoints[*].addresses[0]}',
      )
      return slices.split(' ').sort()
    }
    const running = (
      await jsonpath('pods -l app=web --field-selector=status.phase=Running', '{.items[*].status.podIP}')
    )
      .split(' ')
      .sort()
    expect(running).to.have.length(4)
    await waitFor(async () => (await addresses()).join() === running.join(), {
      what: 'the addresses of all pods',
      deadlineMs: 60_000,
    })
  })

  it('run a StatefulSet in order, a DaemonSet on every node and a Job to its end', async () => {
    await apply(
      workload('apps/v1', 'StatefulSet', 'db', {
        serviceName: 'db',
        replicas: 3,
        selector: selector('db'),
        template: pods('db'),
      }),
      workload('apps/v1', 'DaemonSet', 'agent', { selector: selector('agent'), template: pods('agent') }),
      workload('batch/v1', 'Job', 'once', {
        completions: 3,
        parallelism: 2,
        template: pods('once', { restartPolicy: 'Never' }),
      }),
    )
    await rollout('statefulset/db')
    await rollout('daemonset/agent')
    await kubectl('wait', '--for=condition=Complete', 'job/once', '--timeout=60s')
    expect(await jsonpath('pods -l app=db', '{.items[*].metadata.name}')).to.equal('db-0 db-1 db-2')
    expect(await jsonpath('daemonset agent', '{.status.numberReady}')).to.equal('2')
    expect(await jsonpath('job once', '{.status.succeeded}')).to.equal('3')
  })

  it('respect a disruption budget while a node is drained', async () => {
    await apply(workload('policy/v1', 'PodDisruptionBudget', 'web', { minAvailable: 3, selector: selector('web') }))
    await kubectl('wait', '--for=jsonpath={.status.disruptionsAllowed}=1', 'pdb/web', '--timeout=30s')
    await kubectl('drain', 'kwok-1', '--ignore-daemonsets', '--timeout=90s')
    expect(await jsonpath('pods -l app=web', '{.items[*].spec.nodeName}')).to.not.contain('kwok-1')
    await rollout('deploy/web')
    await kubectl('uncordon', 'kwok-1')
    // With this budget no pod may be evicted.
    await kubectl('patch', 'pdb', 'web', '--type=merge', '-p', '{"spec":{"minAvailable":4}}')
    await kubectl('wait', '--for=jsonpath={.status.disruptionsAllowed}=0', 'pdb/web', '--timeout=30s')
    const [name = ''] = (await jsonpath('pods -l app=web', '{.items[*].metadata.name}')).split(' ')
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'default' } }
    const path = `${tenant.base}/api/v1/namespaces/default/pods/${name}/eviction`
    const refused = await tenant.http.request('POST', path, { body: eviction })
    expect(refused.status, refused.text).to.equal(429)
    expect(textAt(refused.json(), 'details.causes.0.reason')).to.equal('DisruptionBudget')
  })

  it('delete the ReplicaSets and pods of a Deployment, and a namespace with all its content', async () => {
    await kubectl('delete', 'deploy/web', '--cascade=foreground', '--timeout=60s')
    expect(await jsonpath('pods,replicasets -l app=web', '{.items[*].metadata.name}')).to.equal('')
    await kubectl('create', 'namespace', 'busy')
    await kubectl('create', 'deployment', 'busy', '--image=x', '--replicas=3', '-n', 'busy')
    await kubectl('rollout', 'status', 'deploy/busy', '-n', 'busy', '--timeout=60s')
    await kubectl('delete', 'namespace', 'busy', '--timeout=60s')
  })

  it('log no unexpected errors or warnings', () => {
    const complaints = controllers.processes.flatMap((process) => process.log().split('\n').filter(isComplaint))
    expect(complaints.filter((line) => !expected.test(line) && !slow.test(line))).to.deep.equal([])
  })
})

/** An error or a warning in klog's format or in kwok's. */
function isComplaint(line: string): boolean {
  if (/^E\d{4} /.test(line)) return true
  if (!line.startsWith('{')) return false
  const entry: unknown = JSON.parse(line)
  return isRecord(entry) && (entry['level'] === 'ERROR' || entry['level'] === 'WARN')
}
