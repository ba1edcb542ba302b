// Helm 3, and Helm 4, which applies on the server side, in a logical cluster: the life of a release with values, hooks,
// a CRD and notes. No pods run here: the test writes the status that kubelets and controllers would write.
import { expect } from 'chai'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { at } from '#test/integration/json.ts'
import { startInstance, type KcpInstance, type Tenant } from '#test/integration/kcp-instance.ts'
import { ensurePrograms, repositoryRoot, runCommand, waitFor, type CommandResult } from '#test/support/index.ts'

const chart = join(repositoryRoot, 'test', 'clients', 'chart')

const releases = [
  {
    title: 'Helm 3',
    name: 'helm',
    rollBackOnFailure: '--atomic',
    validate: '--validate',
    showResources: ['--show-resources'],
    listAll: ['--all'],
    owner: 'helm Update',
  },
  {
    title: 'Helm 4',
    name: 'helm-4',
    rollBackOnFailure: '--rollback-on-failure',
    validate: '--dry-run=server',
    showResources: [],
    listAll: [],
    owner: 'helm Apply',
  },
] as const

for (const release of releases) describeHelm(release)

function describeHelm({
  title,
  name,
  rollBackOnFailure,
  validate,
  showResources,
  listAll,
  owner,
}: (typeof releases)[number]): void {
  describe(`${title} in a logical cluster`, function () {
    this.timeout(60_000)
    let kcp: KcpInstance
    let acme: Tenant
    let home: string
    let program: string

    const run = (args: readonly string[], expectCode: number | 'any' = 0): Promise<CommandResult> =>
      runCommand(program, ['--kubeconfig', acme.kubeconfig, '--namespace', 'shop', ...args], {
        expectCode,
        env: { KUBECONFIG: undefined, HELM_CACHE_HOME: home, HELM_CONFIG_HOME: home, HELM_DATA_HOME: home },
      })
    const helm = async (...args: string[]): Promise<string> => (await run(args)).stdout
    const get = async (what: string, path: string): Promise<unknown> =>
      at(JSON.parse((await acme.kubectl(['-n', 'shop', 'get', what, '-o', 'json'])).stdout), path)
    const names = async (kinds: string): Promise<string[]> => {
      const { stdout } = await acme.kubectl([
        '-n',
        'shop',
        'get',
        kinds,
        '-l',
        'app.kubernetes.io/instance=web',
        '-o',
        'name',
      ])
      return stdout.split('\n').filter((line) => line !== '')
    }

    /** Writes the status of an object once it exists, again until helm has seen enough. */
    const report = async (what: string, status: object, done: () => boolean): Promise<void> => {
      const patch = [
        '-n',
        'shop',
        'patch',
        what,
        '--subresource=status',
        '--type=merge',
        '-p',
        JSON.stringify({ status }),
      ]
      const reported = async (): Promise<boolean> => (await acme.kubectl(patch, { expectCode: 'any' })).code === 0
      await waitFor(async () => done() || (await reported()), { what: `${what} to take a status`, deadlineMs: 30_000 })
    }
    /** Runs helm while `work` writes the status that it waits for. */
    const helmWhile = async (
      args: readonly string[],
      work: (done: () => boolean) => Promise<void>,
    ): Promise<string> => {
      let ended = false
      const running = helm(...args).finally(() => (ended = true))
      await Promise.all([running, work(() => ended)])
      return running
    }
    const now = new Date().toISOString()
    const migrated = {
      startTime: now,
      completionTime: now,
      succeeded: 1,
      conditions: ['SuccessCriteriaMet', 'Complete'].map((type) => ({ type, status: 'True', lastTransitionTime: now })),
    }
    const upgrade = (...args: string[]): Promise<string> =>
      helmWhile(['upgrade', 'web', chart, ...args], (done) => report('job/web-migrate', migrated, done))

    before(async function () {
      this.timeout(30 * 60_000) // the first build
      home = mkdtempSync(join(tmpdir(), 'kcp-helm-'))
      program = (await ensurePrograms([name]))[name]
      kcp = await startInstance()
      acme = await kcp.tenant('acme')
    })
    after(async () => {
      await kcp[Symbol.asyncDispose]()
      rmSync(home, { recursive: true, force: true })
    })

    it('installs CRD, hooks, objects and notes', async () => {
      const said = await helm('install', 'web', chart, '--create-namespace', '--set', 'replicas=3')
      expect(said).to.include('STATUS: deployed').and.to.include('web has 3 replicas at http://shop.test.')
      expect(await names('deploy,svc,cm,sa,ing,orders')).to.have.length(6)
      const { stdout } = await acme.kubectl(['-n', 'shop', 'get', 'cm/web', '-o', 'json', '--show-managed-fields'])
      const { metadata } = JSON.parse(stdout) as KubeObject
      expect(metadata.managedFields?.map(({ manager, operation }) => `${manager} ${operation}`)).to.deep.equal([owner])
      expect(await get('secret/web-before', 'data.revision')).to.equal(Buffer.from('1').toString('base64'))
      const gone = await acme.kubectl(['-n', 'shop', 'get', 'cm', 'web-passing'], { expectCode: 1 })
      expect(gone.stderr).to.include('not found')
    })

    it('shows status, values and manifest of the release', async () => {
      expect(await helm('list')).to.match(/web\s+shop\s+1\s.*deployed\s+shop-0.1.0/)
      expect(await helm('status', 'web', ...showResources)).to.match(/Deployment\nNAME\s+READY/)
      expect(await helm('get', 'values', 'web')).to.include('replicas: 3')
      expect(await helm('get', 'manifest', 'web')).to.include('kind: Order')
      expect(await helm('get', 'hooks', 'web')).to.include('web-farewell')
    })

    it('upgrades, and deletes objects that the chart no longer has', async () => {
      const password = await get('secret/web-password', 'data.password')
      await upgrade('--set', 'replicas=4,ingress.enabled=false,config.colour=red')
      expect(await get('deploy/web', 'spec.replicas')).to.equal(4)
      expect(await get('cm/web', 'data')).to.deep.equal({ colour: 'red' })
      expect(await names('ing')).to.deep.equal([])
      expect(await get('secret/web-before', 'data.revision')).to.equal(Buffer.from('2').toString('base64'))
      // The chart looks up the password that it generated before.
      expect(await get('secret/web-password', 'data.password')).to.equal(password)
      const gone = await acme.kubectl(['-n', 'shop', 'get', 'job', 'web-migrate'], { expectCode: 1 })
      expect(gone.stderr).to.include('not found')
    })

    it('reverts manual changes, and keeps manual additions', async () => {
      await acme.kubectl(['-n', 'shop', 'annotate', 'deploy/web', 'somebody=was-here'])
      await acme.kubectl(['-n', 'shop', 'delete', 'svc', 'web'])
      await upgrade('--reuse-values', '--set', 'image.tag=1.28')
      expect(await names('svc')).to.deep.equal(['service/web'])
      expect(await get('deploy/web', 'metadata.annotations.somebody')).to.equal('was-here')
      expect(await get('deploy/web', 'spec.template.spec.containers.0.image')).to.equal('nginx:1.28')
    })

    it('runs tests: a pod that succeeds, and one that fails', async () => {
      const said = await helmWhile(['test', 'web'], (done) => report('pod/web-smoke', { phase: 'Succeeded' }, done))
      expect(said).to.match(/TEST SUITE: +web-smoke\n(.*\n)*Phase: +Succeeded/)
      const old = await get('pod/web-smoke', 'metadata.uid')
      const failing = run(['test', 'web'], 1)
      const isNext = async (): Promise<boolean> => (await get('pod/web-smoke', 'metadata.uid')) !== old
      await waitFor(isNext, { what: 'the next pod', deadlineMs: 30_000 })
      await report('pod/web-smoke', { phase: 'Failed' }, () => false)
      expect((await failing).stderr).to.include('pod web-smoke failed')
    })

    it('waits for objects that are not ready, and finishes when they are', async () => {
      const late = await run(['upgrade', 'web', chart, '--reuse-values', '--no-hooks', '--wait', '--timeout', '2s'], 1)
      expect(late.stderr).to.match(/UPGRADE FAILED: [^]*(timed out|deadline)/)
      const said = await helmWhile(['upgrade', 'web', chart, '--reuse-values', '--no-hooks', '--wait'], () => rollOut())
      expect(said).to.include('STATUS: deployed')
    })

    /** Writes the status that the controllers of Deployments and ReplicaSets and the kubelets would write. */
    async function rollOut(): Promise<void> {
      const { stdout } = await acme.kubectl(['-n', 'shop', 'get', 'deploy', 'web', '-o', 'json'])
      const { metadata, spec } = JSON.parse(stdout) as {
        metadata: { uid: string; generation: number }
        spec: { replicas: number; selector: object; template: { metadata: { labels: Record<string, string> } } }
      }
      const { replicas, selector, template } = spec
      const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: metadata.uid, controller: true }
      const set = {
        apiVersion: 'apps/v1',
        kind: 'ReplicaSet',
        metadata: { name: 'web-1', namespace: 'shop', labels: template.metadata.labels, ownerReferences: [owner] },
        spec: { replicas, selector, template },
      }
      await acme.kubectl(['create', '-f', '-'], { input: set })
      const counts = { replicas, readyReplicas: replicas, availableReplicas: replicas }
      // Helm 4 reads the conditions (kstatus), Helm 3 the numbers.
      const conditions = ['Available', 'Progressing'].map((type) => ({
        type,
        status: 'True',
        reason: 'NewReplicaSetAvailable',
        message: '',
      }))
      const deployed = {
        ...counts,
        updatedReplicas: replicas,
        observedGeneration: metadata.generation,
        conditions,
      }
      await report('rs/web-1', { ...counts, observedGeneration: 1 }, () => false)
      await report('deploy/web', deployed, () => false)
    }

    it('rolls back', async () => {
      await helm('rollback', 'web', '1')
      expect(await get('deploy/web', 'spec.replicas')).to.equal(3)
      expect(await names('ing')).to.deep.equal(['ingress.networking.k8s.io/web'])
      expect((await helm('history', 'web')).match(/superseded|deployed/g)).to.deep.equal([
        'superseded',
        'superseded',
        'superseded',
        'superseded',
        'deployed',
      ])
    })

    it('rolls back a refused upgrade', async () => {
      const { stderr } = await run(
        [
          'upgrade',
          'web',
          chart,
          rollBackOnFailure,
          '--no-hooks',
          '--timeout',
          '2s',
          '--set',
          'replicas=0,refuse=true',
        ],
        1,
      )
      expect(stderr)
        .to.include('spec.amount')
        .and.to.match(/UPGRADE FAILED/)
      expect(await get('orders/web', 'spec.amount')).to.equal(3)
      expect(await get('deploy/web', 'spec.replicas')).to.equal(3)
      expect(await helm('history', 'web')).to.match(/\n7 .*failed[^\n]*\n8 /)
    })

    it('renders with dry-run=server and template what kubectl applies', async () => {
      expect(await helm('upgrade', 'web', chart, '--dry-run=server')).to.include('STATUS: pending-upgrade')
      const input = await helm('template', 'plain', chart, '--no-hooks', validate)
      const applied = (await acme.kubectl(['-n', 'shop', 'apply', '-f', '-'], { input })).stdout
      expect(applied.match(/ created\n/g)).to.have.length(7)
      const again = (await acme.kubectl(['-n', 'shop', 'apply', '-f', '-'], { input })).stdout
      expect(again.match(/ unchanged\n/g)).to.have.length(7)
      await acme.kubectl(['-n', 'shop', 'delete', '-f', '-'], { input })
    })

    it('uninstalls the objects and runs the last hook, but keeps the CRD', async () => {
      expect(await helm('uninstall', 'web', '--wait')).to.include('release "web" uninstalled')
      expect(await names('deploy,svc,cm,sa,ing,orders')).to.deep.equal([])
      expect(await get('cm/web-farewell', 'data.release')).to.equal('web')
      expect(await helm('list', ...listAll, '-q')).to.equal('')
      await acme.kubectl(['get', 'crd', 'orders.shop.test.dev'])
    })
  })
}
