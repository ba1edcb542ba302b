// A simulated member by itself: what a plain cluster does with workloads, seen through kubectl.
import { expect } from 'chai'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { startSimulatedMember, type SimulatedMember } from '#simulation/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { kubectl, waitFor } from '#test/support/index.ts'
import { openRawClient } from '../raw-client.ts'

const within = { deadlineMs: 30_000, intervalMs: 50 }

describe('a simulated member', function () {
  this.timeout(60_000)
  const stack = new AsyncDisposableStack()
  let member: SimulatedMember
  let kubeconfig: string

  const run = (...args: string[]) => kubectl(kubeconfig, args, { expectCode: 'any' })
  const apply = (...objects: object[]) =>
    kubectl(kubeconfig, ['apply', '-f', '-'], { input: { apiVersion: 'v1', kind: 'List', items: objects } })
  const read = async (...args: string[]): Promise<KubeObject & { items: KubeObject[] }> =>
    JSON.parse((await kubectl(kubeconfig, [...args, '-o', 'json'])).stdout) as KubeObject & { items: KubeObject[] }
  const jsonpath = async (what: string, path: string): Promise<string> =>
    (await run('get', ...what.split(' '), '-o', `jsonpath={${path}}`)).stdout
  const until = (what: string, path: string, value: string) =>
    waitFor(async () => (await jsonpath(what, path)) === value, {
      what: `${path} of ${what} to be ${value}`,
      ...within,
    })
  const podSpec = (image: string, more: object = {}) => ({ containers: [{ name: 'c', image, ...more }] })
  const pod = (name: string, spec: object, labels = {}) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels },
    spec,
  })
  const workload = (kind: string, name: string, spec: object, template: object) => ({
    apiVersion: 'apps/v1',
    kind,
    metadata: { name },
    spec: {
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: template },
      ...spec,
    },
  })

  before(async () => {
    const dir = mkdtempSync(join(tmpdir(), 'kcp-simulated-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    const life = new AbortController()
    stack.defer(() => life.abort())
    const timing = { startMs: 30, pullMs: 30, stopMs: 200 }
    member = stack.use(
      await startSimulatedMember({ name: 'paris', dir, timing, log: silentLogger, signal: life.signal }),
    )
    kubeconfig = join(dir, 'kubeconfig')
    writeFileSync(kubeconfig, member.kubeconfig)
  })
  after(() => stack.disposeAsync())

  it('has ready nodes, a default StorageClass and the version of a plain cluster', async () => {
    const { items } = await read('get', 'nodes')
    expect(items.map(({ metadata }) => metadata.name)).to.deep.equal(['paris-node-1', 'paris-node-2'])
    await kubectl(kubeconfig, ['wait', '--for=condition=Ready', 'nodes', '--all', '--timeout=20s'])
    expect(await jsonpath('storageclass standard', '.provisioner')).to.equal('simulated.kcp.dev/volumes')
    expect((await run('version')).stdout).to.match(/Server Version: v1\.34\.\d+\+simulated/)
  })

  it('rolls a Deployment out and back, within its budget of replicas, and keeps revisions', async () => {
    const strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } }
    const web = (image: string) => workload('Deployment', 'web', { replicas: 3, strategy }, podSpec(image))
    await apply(web('demo/web:1'))
    await kubectl(kubeconfig, ['rollout', 'status', 'deployment/web', '--timeout=30s'])
    await apply(web('demo/web:2'))
    let least = 3
    let most = 0
    await waitFor(
      async () => {
        const { status } = (await read('get', 'deployment', 'web')) as { status?: Record<string, number> }
        least = Math.min(least, status?.['availableReplicas'] ?? 0)
        most = Math.max(most, status?.['replicas'] ?? 0)
        return (
          status?.['observedGeneration'] !== undefined && status['updatedReplicas'] === 3 && status['replicas'] === 3
        )
      },
      { what: 'the rollout', deadlineMs: 30_000, intervalMs: 20 },
    )
    expect([least, most <= 4]).to.deep.equal([3, true])
    await kubectl(kubeconfig, ['rollout', 'undo', 'deployment/web'])
    await kubectl(kubeconfig, ['rollout', 'status', 'deployment/web', '--timeout=30s'])
    expect((await run('rollout', 'history', 'deployment/web')).stdout).to.match(/\n2 .*\n3 /)
    expect(await jsonpath('deployment web', '.spec.template.spec.containers[0].image')).to.equal('demo/web:1')
    await kubectl(kubeconfig, ['scale', 'deployment/web', '--replicas=1'])
    await until('deployment web', '.status.replicas', '1')
  })

  it('starts pods of a StatefulSet one after the other, each with its claim, and ends them from the last', async () => {
    const claim = {
      metadata: { name: 'data' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    }
    await apply(
      workload(
        'StatefulSet',
        'db',
        { serviceName: 'db', replicas: 3, volumeClaimTemplates: [claim] },
        podSpec('demo/db'),
      ),
    )
    const counts = new Set<string>()
    await waitFor(
      async () => {
        const { items } = await read('get', 'pods', '-l', 'app=db')
        const ready = items.map((one) =>
          JSON.stringify((one['status'] as { conditions?: unknown }).conditions).includes('"type":"Ready"'),
        )
        counts.add(items.map(({ metadata }) => metadata.name).join())
        return ready.length === 3 && (await jsonpath('statefulset db', '.status.readyReplicas')) === '3'
      },
      { what: 'three pods', deadlineMs: 30_000, intervalMs: 20 },
    )
    expect([...counts].filter((names) => names !== '' && !names.startsWith('db-0'))).to.deep.equal([])
    expect(await jsonpath('pvc', '.items[*].status.phase')).to.equal('Bound Bound Bound')
    await kubectl(kubeconfig, ['scale', 'statefulset/db', '--replicas=1'])
    await until('pods -l app=db', '.items[*].metadata.name', 'db-0')
    expect(await jsonpath('pvc', '.items[*].metadata.name')).to.equal('data-db-0 data-db-1 data-db-2')
  })

  it('runs a DaemonSet on each node, Jobs to their end, and CronJobs at their times', async () => {
    const job = (name: string, spec: object, container: object) => ({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name },
      spec: { ...spec, template: { spec: { restartPolicy: 'Never', ...podSpec('busybox', container) } } },
    })
    await apply(
      workload('DaemonSet', 'agent', {}, podSpec('demo/agent')),
      job('sum', { completions: 3, parallelism: 2 }, {}),
      job('bad', { backoffLimit: 0 }, { command: ['sh', '-c', 'exit 3'] }),
    )
    await kubectl(kubeconfig, ['rollout', 'status', 'daemonset/agent', '--timeout=30s'])
    expect(await jsonpath('daemonset agent', '.status.numberAvailable')).to.equal('2')
    await kubectl(kubeconfig, ['wait', '--for=condition=Complete', 'job/sum', '--timeout=30s'])
    expect(await jsonpath('job sum', '.status.succeeded')).to.equal('3')
    await kubectl(kubeconfig, ['wait', '--for=condition=Failed', 'job/bad', '--timeout=30s'])
    expect(await jsonpath('job bad', '.status.conditions[?(@.type=="Failed")].reason')).to.equal('BackoffLimitExceeded')
    expect(
      await jsonpath('pods -l job-name=bad', '.items[0].status.containerStatuses[0].state.terminated.exitCode'),
    ).to.equal('3')
    const jobTemplate = { spec: { template: { spec: { restartPolicy: 'Never', ...podSpec('busybox') } } } }
    await apply({
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name: 'tick' },
      spec: { schedule: '* * * * *', jobTemplate },
    })
    await kubectl(kubeconfig, ['create', 'job', 'now', '--from=cronjob/tick'])
    await kubectl(kubeconfig, ['wait', '--for=condition=Complete', 'job/now', '--timeout=30s'])
  })

  it('shows broken images and missing configuration as a kubelet does', async () => {
    await apply(
      pod('crash', podSpec('demo/fails')),
      pod('nopull', podSpec('demo/web:missing')),
      pod('unready', podSpec('demo/never-ready')),
      pod('noenv', podSpec('demo/web', { envFrom: [{ configMapRef: { name: 'late' } }] })),
    )
    const reason = (name: string) => jsonpath(`pod ${name}`, '.status.containerStatuses[0].state.waiting.reason')
    await waitFor(async () => (await reason('nopull')) === 'ImagePullBackOff', { what: 'ImagePullBackOff', ...within })
    await waitFor(async () => (await reason('crash')) === 'CrashLoopBackOff', { what: 'CrashLoopBackOff', ...within })
    expect((await run('logs', 'crash', '--previous')).stdout).to.include('exit code 1')
    expect((await run('logs', 'nopull')).stderr).to.include('is waiting to start: trying and failing to pull image')
    expect(await jsonpath('pod unready', '.status.phase')).to.equal('Running')
    expect(await reason('noenv')).to.equal('CreateContainerConfigError')
    await kubectl(kubeconfig, ['create', 'configmap', 'late', '--from-literal=COLOUR=blue'])
    await kubectl(kubeconfig, ['wait', '--for=condition=Ready', 'pod/noenv', '--timeout=20s'])
    expect((await run('exec', 'noenv', '--', 'printenv', 'COLOUR')).stdout).to.equal('blue\n')
  })

  it('answers logs, exec with exit codes, the proxy, and top', async () => {
    const volume = { name: 'settings', configMap: { name: 'settings' } }
    await kubectl(kubeconfig, ['create', 'configmap', 'settings', '--from-literal=greeting=hello there'])
    const mounted = podSpec('demo/web', {
      ports: [{ containerPort: 8080 }],
      volumeMounts: [{ name: 'settings', mountPath: '/etc/app' }],
    })
    await apply(pod('shell', { ...mounted, volumes: [volume] }, { app: 'shell' }))
    await kubectl(kubeconfig, ['expose', 'pod', 'shell', '--port=80', '--target-port=8080'])
    await kubectl(kubeconfig, ['wait', '--for=condition=Ready', 'pod/shell', '--timeout=20s'])
    const sh = (script: string) => run('exec', 'shell', '--', 'sh', '-c', script)
    const looked = await sh('cat /etc/app/greeting; echo " from $HOSTNAME"; ls /etc/app && exit 4')
    expect([looked.code, looked.stdout]).to.deep.equal([4, 'hello there from shell\ngreeting\n'])
    const unknown = await sh('reboot')
    expect([unknown.code, unknown.stderr.includes('this is a simulated container')]).to.deep.equal([127, true])
    await waitFor(async () => (await sh('curl http://shell')).stdout.startsWith('hello from pod shell'), {
      what: 'the Service',
      ...within,
    })
    const proxied = await run('get', '--raw', '/api/v1/namespaces/default/pods/shell:8080/proxy/stock')
    expect([proxied.stderr, proxied.stdout.split('\n')[0]]).to.deep.equal([
      '',
      'hello from pod shell in member paris (simulated)',
    ])
    expect((await run('logs', 'shell', '--tail=1')).stdout).to.equal('GET /stock 200 from a proxy\n')
    const following = kubectl(kubeconfig, ['logs', 'shell', '-f'], { timeoutMs: 30_000 })
    await kubectl(kubeconfig, ['delete', 'pod', 'shell'])
    expect((await following).stdout).to.include('received SIGTERM')
    expect((await run('top', 'nodes', '--no-headers')).stdout).to.match(/^paris-node-1 +\d+m/)
    expect((await run('top', 'pods', '-n', 'kube-system', '--no-headers')).stdout).to.include('kube-proxy')
  })

  it('ends pods gracefully: they serve until their stop, and their endpoints say so', async () => {
    await apply(
      workload(
        'Deployment',
        'slow-stop',
        {},
        podSpec('demo/web', { lifecycle: { preStop: { sleep: { seconds: 2 } } } }),
      ),
    )
    await kubectl(kubeconfig, ['expose', 'deployment', 'slow-stop', '--port=80'])
    await kubectl(kubeconfig, ['rollout', 'status', 'deployment/slow-stop', '--timeout=30s'])
    const conditions = (): Promise<string> =>
      jsonpath('endpointslices -l kubernetes.io/service-name=slow-stop', '.items[0].endpoints[0].conditions')
    await waitFor(async () => (await conditions()).includes('"ready":true'), { what: 'the endpoint', ...within })
    await kubectl(kubeconfig, ['scale', 'deployment/slow-stop', '--replicas=0'])
    await waitFor(async () => (await conditions()) === '{"ready":false,"serving":true,"terminating":true}', {
      what: 'a terminating endpoint',
      ...within,
    })
    await until('pods -l app=slow-stop', '.items', '[]')
  })

  it('evicts within a PodDisruptionBudget alone', async () => {
    await apply(workload('Deployment', 'kept', { replicas: 1 }, podSpec('demo/web')), {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'kept' },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'kept' } } },
    })
    await kubectl(kubeconfig, ['rollout', 'status', 'deployment/kept', '--timeout=30s'])
    await until('pdb kept', '.status.currentHealthy', '1')
    const name = await jsonpath('pods -l app=kept', '.items[0].metadata.name')
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'default' } }
    const path = `/api/v1/namespaces/default/pods/${name}/eviction`
    const evict = () =>
      kubectl(kubeconfig, ['create', '--raw', path, '-f', '-'], { input: eviction, expectCode: 'any' })
    expect((await evict()).stderr).to.include('disruption budget')
    await kubectl(kubeconfig, ['scale', 'deployment/kept', '--replicas=2'])
    await until('pdb kept', '.status.disruptionsAllowed', '1')
    expect((await evict()).code).to.equal(0)
  })

  it('deletes a namespace with all that is in it', async () => {
    await kubectl(kubeconfig, ['create', 'namespace', 'brief'])
    await kubectl(kubeconfig, ['create', 'deployment', 'web', '-n', 'brief', '--image=demo/web', '--replicas=3'])
    await kubectl(kubeconfig, ['rollout', 'status', '-n', 'brief', 'deployment/web', '--timeout=30s'])
    await kubectl(kubeconfig, ['delete', 'namespace', 'brief', '--timeout=30s'])
  })

  it('listens on loopback alone, and serves nobody without its credentials', async () => {
    const { hostname, port } = new URL(/server: (\S+)/.exec(member.kubeconfig)?.[1] ?? '')
    expect(hostname).to.equal('127.0.0.1')
    const others = Object.values(networkInterfaces()).flatMap((list = []) =>
      list.filter(({ internal, family }) => !internal && family === 'IPv4'),
    )
    for (const { address } of others) {
      const outcome = await new Promise<string>((resolve) => {
        const socket = createConnection({ host: address, port: Number(port), timeout: 2000 })
        socket.once('connect', () => resolve('connected'))
        socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'))
        socket.once('timeout', () => resolve('timeout'))
      })
      expect(outcome, address).to.not.equal('connected')
    }
    await using anonymous = openRawClient({ port: Number(port) })
    for (const path of ['/clusters/root/api/v1/nodes', '/clusters/root/api/v1/secrets', '/api/v1/nodes', '/metrics']) {
      const { status } = await anonymous.request('GET', path)
      expect(status, path).to.be.oneOf([401, 403])
    }
  })

  it('answers nothing without power, and goes on with its data afterwards', async () => {
    const before = await jsonpath('deployment web', '.metadata.uid')
    await member.setPower(false)
    expect((await run('get', 'nodes', '--request-timeout=5s')).code).to.equal(1)
    await member.setPower(true)
    expect(await jsonpath('deployment web', '.metadata.uid')).to.equal(before)
    await kubectl(kubeconfig, ['rollout', 'restart', 'deployment/web'])
    await kubectl(kubeconfig, ['rollout', 'status', 'deployment/web', '--timeout=30s'])
  })
})
