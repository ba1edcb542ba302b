// The messages to tenants and admins when a member refuses an object of a tenant, or a logical cluster refuses an
// object of a member. kcp start with a real API server as member, whose pods only report that they run.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { runKcp, startCluster, waitFor, type Cluster } from '#test/support/index.ts'
import { startWebhookServer, type WebhookServer } from '#test/support/webhook-server.ts'
import { startInstance, type KcpInstance, type Tenant } from '#test/integration/kcp-instance.ts'
import { clientOf } from './ordinary-upstream.ts'
import { simulateKubelet } from './played-member.ts'

const namespace = 'shop'
const within = { deadlineMs: 60_000, intervalMs: 200 }
const spec = { containers: [{ name: 'app', image: 'example/app:1' }] }
const denied = 'the office says no'
/** The answers of the member's webhooks, by the value of label `refuse`. */
const refusals = {
  deny: { path: `/answer/${encode({ allowed: false, status: { message: denied, code: 403 } })}`, words: denied },
  break: { path: '/status/500', words: 'failed calling webhook "break.example.com"' },
} as const
type Refusal = keyof typeof refusals

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function object(apiVersion: string, kind: string, name: string, labels: Record<string, string>, content: object) {
  return { apiVersion, kind, metadata: { name, namespace, labels }, ...content }
}

function deployment(name: string, labels: Record<string, string> = {}, podSpec: object = spec) {
  const app = { app: name }
  const template = { metadata: { labels: app }, spec: podSpec }
  return object('apps/v1', 'Deployment', name, labels, { spec: { selector: { matchLabels: app }, template } })
}

interface Row {
  readonly title: string
  readonly refusal: Refusal
  /** What the tenant applies; the first object is refused. */
  readonly objects: (labels: Record<string, string>) => readonly object[]
  readonly kind: string
  readonly name: string
  /** Its status has conditions. */
  readonly hasCondition: boolean
  /** The workload that `kcp placement explain` is asked about. */
  readonly workload?: string
}

const rows: readonly Row[] = [
  {
    title: 'a Deployment that a webhook of the member denies',
    refusal: 'deny',
    objects: (labels) => [deployment('denied', labels)],
    ...{ kind: 'Deployment', name: 'denied', hasCondition: true, workload: 'deployment/denied' },
  },
  {
    title: 'a StatefulSet whose webhook in the member fails',
    refusal: 'break',
    objects: (labels) => [
      object('apps/v1', 'StatefulSet', 'broken', labels, {
        spec: {
          selector: { matchLabels: { app: 'broken' } },
          template: { metadata: { labels: { app: 'broken' } }, spec },
        },
      }),
    ],
    ...{ kind: 'StatefulSet', name: 'broken', hasCondition: true, workload: 'statefulset/broken' },
  },
  {
    title: 'a Job',
    refusal: 'break',
    objects: (labels) => [
      object('batch/v1', 'Job', 'once', labels, { spec: { template: { spec: { ...spec, restartPolicy: 'Never' } } } }),
    ],
    ...{ kind: 'Job', name: 'once', hasCondition: true, workload: 'job/once' },
  },
  {
    title: 'a pod of the tenant',
    refusal: 'deny',
    objects: (labels) => [object('v1', 'Pod', 'alone', labels, { spec })],
    ...{ kind: 'Pod', name: 'alone', hasCondition: true, workload: 'pod/alone' },
  },
  {
    title: 'a CronJob',
    refusal: 'deny',
    objects: (labels) => [
      object('batch/v1', 'CronJob', 'often', labels, {
        spec: {
          schedule: '0 0 1 1 *',
          jobTemplate: { spec: { template: { spec: { ...spec, restartPolicy: 'Never' } } } },
        },
      }),
    ],
    ...{ kind: 'CronJob', name: 'often', hasCondition: false, workload: 'cronjob/often' },
  },
  {
    title: 'a ConfigMap that a Deployment needs',
    refusal: 'break',
    objects: (labels) => [
      object('v1', 'ConfigMap', 'settings', labels, { data: { a: '1' } }),
      deployment(
        'needs',
        {},
        {
          containers: [{ name: 'app', image: 'example/app:1', envFrom: [{ configMapRef: { name: 'settings' } }] }],
        },
      ),
    ],
    ...{ kind: 'ConfigMap', name: 'settings', hasCondition: false, workload: 'deployment/needs' },
  },
  {
    title: 'a Service',
    refusal: 'break',
    objects: (labels) => [
      object('v1', 'Service', 'front', labels, { spec: { selector: { app: 'base' }, ports: [{ port: 80 }] } }),
    ],
    ...{ kind: 'Service', name: 'front', hasCondition: true, workload: 'deployment/base' },
  },
  {
    title: 'a NetworkPolicy',
    refusal: 'deny',
    objects: (labels) => [
      object('networking.k8s.io/v1', 'NetworkPolicy', 'wall', labels, { spec: { podSelector: {} } }),
    ],
    ...{ kind: 'NetworkPolicy', name: 'wall', hasCondition: false },
  },
  {
    title: 'a PodDisruptionBudget',
    refusal: 'deny',
    objects: (labels) => [
      object('policy/v1', 'PodDisruptionBudget', 'budget', labels, {
        spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'base' } } },
      }),
    ],
    ...{ kind: 'PodDisruptionBudget', name: 'budget', hasCondition: true },
  },
]

describe('a failure to sync', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  let kcp: KcpInstance
  let acme: Tenant
  let east: Cluster
  let hooks: WebhookServer

  before(async function () {
    this.timeout(300_000)
    kcp = stack.use(await startInstance())
    acme = await kcp.tenant('acme')
    east = stack.use(await startCluster({ name: 'east', controllerManager: true }))
    stack.defer(() => life.abort())
    simulateKubelet(await clientOf(east.kubeconfig, stack), { subnet: '10.90.0', signal: life.signal })
    hooks = stack.use(await startWebhookServer())
    await runKcp(['member', 'join', 'east', '--kubeconfig', east.kubeconfig, '--root-dir', kcp.rootDir])
    await kcp.admin.kubectl(['wait', '--for=condition=Ready', 'mc/east', '--timeout=60s'])
    await acme.kubectl(['create', 'namespace', namespace])
    await apply(deployment('base'))
    await acme.kubectl(['-n', namespace, 'wait', '--for=condition=Available', 'deployment/base', '--timeout=60s'])
    await setRefusals(Object.keys(refusals) as Refusal[])
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  const apply = (...objects: readonly object[]) =>
    acme.kubectl(['apply', '-f', '-'], { input: { apiVersion: 'v1', kind: 'List', items: objects } })
  const setRefusals = async (wanted: readonly Refusal[]): Promise<void> => {
    const webhooks = wanted.map((name) => ({
      ...{ name: `${name}.example.com`, sideEffects: 'None', admissionReviewVersions: ['v1'], timeoutSeconds: 2 },
      objectSelector: { matchLabels: { refuse: name } },
      rules: [{ apiGroups: ['*'], apiVersions: ['*'], operations: ['CREATE', 'UPDATE'], resources: ['*'] }],
      clientConfig: hooks.at(refusals[name].path),
    }))
    await east.kubectl(['apply', '-f', '-'], {
      input: {
        ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingWebhookConfiguration' },
        ...{ metadata: { name: 'office' }, webhooks },
      },
    })
  }
  const until = <T>(what: string, attempt: () => Promise<T | undefined | false>): Promise<T> =>
    waitFor(async () => (await attempt()) || undefined, { what, ...within })
  const eventsOf = async (kind: string, name: string): Promise<string[]> => {
    const selector = `involvedObject.kind=${kind},involvedObject.name=${name},reason=SyncFailed`
    const format = 'jsonpath={range .items[*]}{.message}{"\\n"}{end}'
    const { stdout } = await acme.kubectl([
      '-n',
      namespace,
      'get',
      'events',
      '--field-selector',
      selector,
      '-o',
      format,
    ])
    return stdout.split('\n').filter((line) => line !== '')
  }
  const syncedOf = async (kind: string, name: string): Promise<string | undefined> => {
    const { stdout } = await acme.kubectl(['-n', namespace, 'get', kind, name, '-o', 'json'])
    const { status } = JSON.parse(stdout) as KubeObject & { status?: { conditions?: Record<string, string>[] } }
    return status?.conditions?.find(({ type }) => type === 'Synced')?.['message']
  }
  const explain = async (workload: string): Promise<string> => {
    const where = ['--cluster', 'acme', '--namespace', namespace, '--root-dir', kcp.rootDir]
    return (await runKcp(['placement', 'explain', workload, ...where])).stdout
  }
  const diagnose = async (): Promise<string> =>
    (await runKcp(['diagnose', '--root-dir', kcp.rootDir], { expectCode: 'any' })).stdout
  const failing = async (): Promise<string> => {
    const format = 'jsonpath={.status.conditions[?(@.type=="SyncFailing")].message}'
    return (await kcp.admin.kubectl(['get', 'mc', 'east', '-o', format])).stdout
  }

  describe('that a webhook of the member causes', () => {
    before(() => apply(...rows.flatMap(({ objects, refusal }) => objects({ refuse: refusal }))))

    for (const { title, refusal, kind, name, hasCondition, workload } of rows) {
      it(`is told for ${title}, in the words of the member`, async () => {
        const { words } = refusals[refusal]
        const [event] = await until('the Event', async () => {
          const found = await eventsOf(kind, name)
          return found.length > 0 && found
        })
        expect(event).to.include('member cluster "east": ').and.to.include(words)
        if (hasCondition) expect(await until('the condition', () => syncedOf(kind, name))).to.include(words)
        if (workload !== undefined)
          expect(await explain(workload))
            .to.match(/fails in: .*east: /)
            .and.to.include(words)
      })
    }

    it('is told to the admin of the installation', async () => {
      await until('all of them', async () =>
        (await failing()).startsWith(`${rows.length + 1} objects cannot be synced`),
      )
      const { stdout } = await kcp.admin.kubectl(['get', 'events', '--field-selector', 'reason=SyncFailing'])
      expect(stdout).to.include('Warning')
      expect(await diagnose())
        .to.include('SyncFailing=True')
        .and.to.include('see the Events of that object')
    })

    it('does not tell tenants the names of namespaces in members', async () => {
      const id = (await kcp.admin.kubectl(['get', 'lc', 'acme', '-o', 'jsonpath={.status.id}'])).stdout
      const kinds = 'events,deployments,statefulsets,jobs,pods,configmaps,services'
      const { stdout } = await acme.kubectl(['-n', namespace, 'get', kinds, '-o', 'json'])
      expect(stdout).to.include('SyncFailed').and.not.to.include(`${id}-`)
    })

    it('is told no more when the tenants have changed the objects', async () => {
      await apply(...rows.flatMap(({ objects }) => objects({ refuse: 'nobody' })))
      await until('the end of the failures', async () => (await failing()) === '')
      for (const { kind, name, hasCondition, workload } of rows) {
        if (hasCondition) await until(`the end for ${name}`, async () => (await syncedOf(kind, name)) === undefined)
        if (workload === 'deployment/needs') expect(await explain(workload)).not.to.include('fails in:')
      }
    })
  })

  describe('of another kind', () => {
    it('of a change keeps the status of the copy that runs up to date', async () => {
      await apply(deployment('runs'))
      await acme.kubectl(['-n', namespace, 'wait', '--for=condition=Available', 'deployment/runs', '--timeout=60s'])
      await apply(deployment('runs', { refuse: 'break' }))
      await until('the condition', () => syncedOf('Deployment', 'runs'))
      const id = (await kcp.admin.kubectl(['get', 'lc', 'acme', '-o', 'jsonpath={.status.id}'])).stdout
      await east.kubectl(['-n', `${id}-${namespace}`, 'scale', 'deployment/runs', '--replicas=0'])
      await until('the status', async () => {
        const { stdout } = await acme.kubectl([
          '-n',
          namespace,
          'get',
          'deployment',
          'runs',
          '-o',
          'jsonpath={.status}',
        ])
        return !stdout.includes('"readyReplicas":1')
      })
      expect(await syncedOf('Deployment', 'runs')).to.include(refusals.break.words)
      await acme.kubectl(['-n', namespace, 'delete', 'deployment', 'runs'])
    })

    it('of a pod that the logical cluster refuses is told on its workload', async () => {
      const policy = {
        ...{
          apiVersion: 'admissionregistration.k8s.io/v1',
          kind: 'ValidatingAdmissionPolicy',
          metadata: { name: 'pods' },
        },
        spec: {
          failurePolicy: 'Fail',
          matchConstraints: {
            resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
          },
          validations: [
            { expression: "object.metadata.?labels.app.orValue('') != 'hidden'", message: 'no pods of this app' },
          ],
        },
      }
      const binding = {
        ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingAdmissionPolicyBinding' },
        ...{ metadata: { name: 'pods' }, spec: { policyName: 'pods', validationActions: ['Deny'] } },
      }
      await apply(policy, binding)
      await until('the policy', async () => {
        const pod = object('v1', 'Pod', 'probe', { app: 'hidden' }, { spec })
        const { stderr } = await acme.kubectl(['create', '--dry-run=server', '-f', '-'], {
          input: pod,
          expectCode: 'any',
        })
        return stderr.includes('no pods of this app')
      })
      await apply(deployment('hidden'))
      const message = await until('the condition', () => syncedOf('Deployment', 'hidden'))
      expect(message).to.match(/^east: pod "hidden-[^"]*": .*no pods of this app/)
      expect((await eventsOf('Deployment', 'hidden'))[0]).to.include('no pods of this app')
      expect(await explain('deployment/hidden')).to.include('no pods of this app')
      await until('the condition of the member', async () => (await failing()).includes('no pods of this app'))
      expect(await diagnose()).to.include('no pods of this app')
      await acme.kubectl(['delete', 'validatingadmissionpolicybinding', 'pods'])
      await until('the end of the failure', async () => (await syncedOf('Deployment', 'hidden')) === undefined)
      await until('the end for the member', async () => (await failing()) === '')
    })

    it('of a deleted namespace names the member that does not answer', async () => {
      await acme.kubectl(['create', 'namespace', 'away'])
      const there = deployment('there')
      await apply({ ...there, metadata: { ...there.metadata, namespace: 'away' } })
      await acme.kubectl(['-n', 'away', 'wait', '--for=condition=Available', 'deployment/there', '--timeout=60s'])
      const server = east.processes.get('kube-apiserver')
      await server?.kill()
      await acme.kubectl(['delete', 'namespace', 'away', '--wait=false'])
      const format = 'jsonpath={.status.conditions[?(@.type=="NamespaceContentRemaining")].message}'
      await until('the condition', async () =>
        (await acme.kubectl(['get', 'namespace', 'away', '-o', format])).stdout.includes('"east" ('),
      )
      await server?.start()
      await acme.kubectl(['wait', '--for=delete', 'namespace/away', '--timeout=90s'])
    })

    it('of a deletion is told on the object that waits for it', async () => {
      await apply(deployment('stays'))
      await acme.kubectl(['-n', namespace, 'wait', '--for=condition=Available', 'deployment/stays', '--timeout=60s'])
      const clientConfig = hooks.at(refusals.deny.path)
      const rules = [{ apiGroups: ['apps'], apiVersions: ['v1'], operations: ['DELETE'], resources: ['deployments'] }]
      await east.kubectl(['apply', '-f', '-'], {
        input: {
          ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingWebhookConfiguration' },
          metadata: { name: 'deletions' },
          webhooks: [
            {
              ...{ name: 'deletions.example.com', sideEffects: 'None', admissionReviewVersions: ['v1'] },
              ...{ rules, clientConfig },
            },
          ],
        },
      })
      await acme.kubectl(['-n', namespace, 'delete', 'deployment', 'stays', '--wait=false'])
      expect(await until('the condition', () => syncedOf('Deployment', 'stays'))).to.include(denied)
      expect((await eventsOf('Deployment', 'stays'))[0]).to.include(denied)
      await east.kubectl(['delete', 'validatingwebhookconfiguration', 'deletions'])
      await acme.kubectl(['-n', namespace, 'wait', '--for=delete', 'deployment/stays', '--timeout=60s'])
      await until('the end of the failure', async () => (await failing()) === '')
    })
  })
})
