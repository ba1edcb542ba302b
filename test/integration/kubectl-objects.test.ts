import { spawn } from 'node:child_process'
import { expect } from 'chai'
import { parse, parseAllDocuments } from 'yaml'
import { ensurePrograms, kubectlEnvironment, waitFor } from '#test/support/index.ts'
import { at } from './json.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx:1.27
        ports: [{containerPort: 80}]
        env: [{name: A, value: a}, {name: B, value: b}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {colour: green, "a.txt": "one\\ntwo\\n"}
---
apiVersion: v1
kind: Secret
metadata: {name: web}
data: {password: aHVudGVyMg==}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: web}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}
subjects: [{kind: ServiceAccount, name: web, namespace: shop}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {rules: [{host: shop.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: web}
spec:
  schedule: "*/5 * * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: web}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

describe('stock kubectl in a logical cluster', () => {
  let kcp: KcpInstance
  let acme: Tenant
  const shop = async (...args: string[]): Promise<string> => (await acme.kubectl(['-n', 'shop', ...args])).stdout
  const refused = async (args: readonly string[], input?: string): Promise<string> => {
    const result = await acme.kubectl(args, { expectCode: 'any', ...(input === undefined ? {} : { input }) })
    expect(result.code, `kubectl ${args.join(' ')}: ${result.stdout}`).to.equal(1)
    return result.stderr
  }
  const get = async (what: string, path: string): Promise<unknown> =>
    at(JSON.parse(await shop('get', what, '-o', 'json')), path)

  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
    await acme.kubectl(['create', 'namespace', 'shop'])
  })
  after(() => kcp[Symbol.asyncDispose]())

  it('has the objects that every new cluster has', async () => {
    const namespaces = (await acme.kubectl(['get', 'namespaces', '-o', 'name'])).stdout.trim().split('\n')
    for (const name of ['default', 'kube-system', 'kube-public', 'kube-node-lease'])
      expect(namespaces).to.include(`namespace/${name}`)
    await acme.kubectl(['get', 'clusterrole', 'cluster-admin', 'admin', 'edit', 'view'])
    await acme.kubectl(['get', 'service', 'kubernetes'])
    await acme.kubectl([
      'wait',
      '--for=create',
      'serviceaccount/default',
      'configmap/kube-root-ca.crt',
      '--timeout=10s',
    ])
    expect(await shop('wait', '--for=create', 'serviceaccount/default', '--timeout=10s')).to.include('met')
    expect(await shop('wait', '--for=create', 'configmap/kube-root-ca.crt', '--timeout=10s')).to.include('met')
  })

  describe('apply', () => {
    it('creates, then finds nothing to change, with client-side and server-side diff', async () => {
      const first = (await acme.kubectl(['-n', 'shop', 'apply', '-f', '-'], { input: deployment })).stdout
      expect(first.trim().split('\n')).to.have.length(10)
      expect(first).to.match(/^(.* created\n){10}$/)
      const columns = 'custom-columns=N:.metadata.name,V:.metadata.resourceVersion'
      const versions = await shop('get', 'deploy,svc,cm,secret,ing,cronjob,pvc,role', '-o', columns)
      const second = (await acme.kubectl(['-n', 'shop', 'apply', '-f', '-'], { input: deployment })).stdout
      expect(second).to.match(/^(.* unchanged\n){10}$/)
      expect(await shop('get', 'deploy,svc,cm,secret,ing,cronjob,pvc,role', '-o', columns)).to.equal(versions)
      const diff = await acme.kubectl(['-n', 'shop', 'diff', '-f', '-'], { input: deployment })
      expect(diff.stdout).to.equal('')
    })

    it('changes and removes fields, and diff shows it before', async () => {
      const changed = deployment.replace('replicas: 2', 'replicas: 3').replace('{name: A, value: a}, ', '')
      const diff = await acme.kubectl(['-n', 'shop', 'diff', '-f', '-'], { input: changed, expectCode: 1 })
      expect(diff.stdout).to.include('+  replicas: 3')
      const applied = (await acme.kubectl(['-n', 'shop', 'apply', '-f', '-'], { input: changed })).stdout
      expect(applied).to.include('deployment.apps/web configured')
      expect(applied.match(/unchanged/g)).to.have.length(9)
      expect(await get('deploy/web', 'spec.template.spec.containers.0.env')).to.deep.equal([{ name: 'B', value: 'b' }])
      expect(await get('deploy/web', 'metadata.generation')).to.equal(2)
    })

    it('with --server-side creates, names who owns a field, and takes it by force', async () => {
      const config = (data: string): string =>
        `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: by-server}\ndata: ${data}\n`
      const apply = (data: string, flags: string[], expectCode = 0): Promise<{ stdout: string; stderr: string }> =>
        acme.kubectl(['-n', 'shop', 'apply', '--server-side', ...flags, '-f', '-'], { input: config(data), expectCode })
      expect((await apply('{a: one}', ['--dry-run=server'])).stdout).to.include('(server dry run)')
      expect(await shop('get', 'configmap', '-o', 'name')).to.not.include('by-server')
      await apply('{a: one, b: two}', [])
      const { stderr } = await apply('{a: other}', ['--field-manager=somebody'], 1)
      expect(stderr).to.include('Apply failed with 1 conflict: conflict with "kubectl": .data.a')
      await apply('{a: other}', ['--field-manager=somebody', '--force-conflicts'])
      await apply('{}', [])
      expect(await get('cm/by-server', 'data')).to.deep.equal({ a: 'other' })
    })

    it('with --dry-run=server shows the result and stores nothing', async () => {
      const input = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: dry}\n'
      const said = await acme.kubectl(['-n', 'shop', 'apply', '--dry-run=server', '-o', 'json', '-f', '-'], { input })
      expect(at(JSON.parse(said.stdout), 'metadata.uid')).to.be.a('string')
      expect(await refused(['-n', 'shop', 'get', 'cm', 'dry'])).to.include('configmaps "dry" not found')
      await shop('delete', 'cm', 'web', '--dry-run=server')
      await shop('get', 'cm', 'web')
      await shop('scale', 'deploy/web', '--replicas=9', '--dry-run=server')
      expect(await get('deploy/web', 'spec.replicas')).to.equal(3)
    })

    it('refuses unknown and duplicate fields by name', async () => {
      const input = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: typo}\ndatta: {a: b}\n'
      const strict = await refused(['-n', 'shop', 'create', '--validate=strict', '-f', '-'], input)
      expect(strict).to.include('strict decoding error: unknown field "datta"')
      const warned = await acme.kubectl(['-n', 'shop', 'create', '--validate=warn', '-f', '-'], { input })
      expect(warned.stderr).to.include('Warning: unknown field "datta"')
      await shop('delete', 'cm', 'typo')
    })
  })

  describe('get', () => {
    it('prints tables, wide tables, names, YAML, JSON, paths and columns', async () => {
      expect(await shop('get', 'deploy')).to.match(/^NAME +READY +UP-TO-DATE +AVAILABLE +AGE\nweb +0\/3 +0 +0 +\d+s\n$/)
      expect(await shop('get', 'deploy', '-o', 'wide')).to.match(
        /CONTAINERS +IMAGES +SELECTOR\nweb .*nginx:1.27 +app=web/,
      )
      expect(await shop('get', 'svc')).to.match(/^NAME +TYPE +CLUSTER-IP .*\nweb +ClusterIP +[\d.]+ +<none> +80\/TCP/)
      expect(await shop('get', 'cm', 'web', '-o', 'name')).to.equal('configmap/web\n')
      expect(parse(await shop('get', 'cm', 'web', '-o', 'yaml'))).to.deep.include({
        kind: 'ConfigMap',
        apiVersion: 'v1',
        data: { colour: 'green', 'a.txt': 'one\ntwo\n' },
      })
      expect(await shop('get', 'secret', 'web', '-o', 'jsonpath={.data.password}')).to.equal('aHVudGVyMg==')
      expect(await shop('get', 'cm', '--no-headers', '-o', 'custom-columns=N:.metadata.name,C:.data.colour')).to.match(
        /web +green/,
      )
      expect(await shop('get', 'cm', '--show-labels', '--sort-by=.metadata.name')).to.match(/LABELS/)
      expect(await shop('get', 'pvc')).to.match(/web +Pending/)
      expect(await shop('get', 'cronjob')).to.match(/web +\*\/5 \* \* \* \* +<none> +False +0 +<none>/)
      expect(await shop('get', 'ingress')).to.match(/web +<none> +shop.test +80/)
    })

    it('lists several kinds at once, all kinds, and all namespaces', async () => {
      expect(await shop('get', 'all')).to.match(/service\/web[\s\S]*deployment.apps\/web[\s\S]*cronjob.batch\/web/)
      expect((await acme.kubectl(['get', 'cm', '-A'])).stdout).to.match(/shop +web +2/)
      expect(parseAllDocuments(await shop('get', 'cm,secret', '-o', 'yaml'))).to.have.length(1)
    })

    it('lists every object once in chunks', async () => {
      const many = Array.from({ length: 7 }, (_, index) => ({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: `chunk-${index}`, labels: { chunk: 'yes' } },
      }))
      await acme.kubectl(['-n', 'shop', 'create', '-f', '-'], {
        input: many.map((object) => JSON.stringify(object)).join('\n---\n'),
      })
      const names = await shop('get', 'cm', '-l', 'chunk=yes', '--chunk-size=2', '-o', 'name')
      expect(names.trim().split('\n')).to.deep.equal(many.map(({ metadata }) => `configmap/${metadata.name}`))
      expect(
        await shop('get', 'cm', '-l', 'chunk in (yes),!app', '--field-selector=metadata.name=chunk-3', '-o', 'name'),
      ).to.equal('configmap/chunk-3\n')
      await shop('delete', 'cm', '-l', 'chunk=yes')
      expect(await shop('get', 'cm', '-l', 'chunk=yes', '-o', 'name')).to.equal('')
    })

    it('reports a missing object as a real server does', async () => {
      expect(await refused(['-n', 'shop', 'get', 'deploy', 'nope'])).to.equal(
        'Error from server (NotFound): deployments.apps "nope" not found\n',
      )
      expect(await refused(['get', 'unicorns'])).to.include(`the server doesn't have a resource type "unicorns"`)
      expect(await refused(['get', 'cm', '--field-selector=spec.x=1'])).to.include(
        '"spec.x" is not a known field selector',
      )
    })

    it('--watch prints existing, new and deleted objects', async () => {
      const { kubectl } = await ensurePrograms(['kubectl'])
      const args = [
        '--kubeconfig',
        acme.kubeconfig,
        '-n',
        'shop',
        'get',
        'cm',
        '-l',
        'watched=yes',
        '-w',
        '--output-watch-events',
      ]
      const child = spawn(kubectl, args, { env: { ...process.env, ...kubectlEnvironment(acme.kubeconfig) } })
      let seen = ''
      child.stdout.on('data', (chunk: Buffer) => (seen += chunk.toString()))
      const until = (pattern: RegExp): Promise<boolean> =>
        waitFor(() => pattern.test(seen), { what: `kubectl to print ${String(pattern)}`, deadlineMs: 10_000 })
      try {
        await shop('create', 'cm', 'seen')
        await shop('label', 'cm', 'seen', 'watched=yes')
        await until(/ADDED +seen +0/)
        await shop('patch', 'cm', 'seen', '-p', '{"data":{"a":"b"}}')
        await until(/MODIFIED +seen +1/)
        await shop('label', 'cm', 'seen', 'watched-')
        await until(/DELETED +seen +1/)
        expect(seen).to.match(/^EVENT +NAME +DATA +AGE\n/)
      } finally {
        child.kill('SIGKILL')
        await shop('delete', 'cm', 'seen')
      }
    })
  })

  describe('changes', () => {
    it('by JSON, merge and strategic merge patch', async () => {
      await shop(
        'patch',
        'deploy/web',
        '--type=strategic',
        '-p',
        '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"s:1"}]}}}}',
      )
      expect(await get('deploy/web', 'spec.template.spec.containers.1.name')).to.be.oneOf(['web', 'side'])
      expect(JSON.stringify(await get('deploy/web', 'spec.template.spec.containers'))).to.include('nginx:1.27')
      await shop(
        'patch',
        'deploy/web',
        '--type=strategic',
        '-p',
        '{"spec":{"template":{"spec":{"containers":[{"name":"side","$patch":"delete"}]}}}}',
      )
      expect(await get('deploy/web', 'spec.template.spec.containers')).to.have.length(1)
      await shop(
        'patch',
        'deploy/web',
        '--type=json',
        '-p',
        '[{"op":"test","path":"/spec/replicas","value":3},{"op":"replace","path":"/spec/replicas","value":4}]',
      )
      await shop(
        'patch',
        'deploy/web',
        '--type=merge',
        '-p',
        '{"spec":{"paused":true},"metadata":{"annotations":{"x":"y"}}}',
      )
      expect(await get('deploy/web', 'spec.replicas')).to.equal(4)
      expect(await get('deploy/web', 'spec.paused')).to.equal(true)
      expect(
        await refused([
          '-n',
          'shop',
          'patch',
          'deploy/web',
          '--type=json',
          '-p',
          '[{"op":"test","path":"/spec/replicas","value":1}]',
        ]),
      ).to.match(/test/i)
      expect(
        await refused(['-n', 'shop', 'patch', 'deploy/web', '--type=merge', '-p', '{"spec":{"replicas":"many"}}']),
      ).to.match(/cannot be handled as a Deployment|cannot unmarshal string/)
      await shop(
        'patch',
        'deploy/web',
        '--subresource=status',
        '--type=merge',
        '-p',
        '{"status":{"replicas":4,"observedGeneration":9},"spec":{"replicas":1}}',
      )
      expect(await get('deploy/web', 'status.replicas')).to.equal(4)
      expect(await get('deploy/web', 'spec.replicas')).to.equal(4)
    })

    it('by label, annotate, set, scale, rollout and edit', async () => {
      await shop('label', 'deploy/web', 'tier=front')
      expect(await shop('get', 'deploy', '-l', 'tier=front', '-o', 'name')).to.equal('deployment.apps/web\n')
      expect(await refused(['-n', 'shop', 'label', 'deploy/web', 'tier=back'])).to.include('already has a value')
      await shop('label', 'deploy/web', 'tier=back', '--overwrite')
      await shop('annotate', 'deploy/web', 'note=hello')
      await shop('annotate', 'deploy/web', 'note-')
      await shop('set', 'image', 'deploy/web', 'web=nginx:1.28')
      await shop('set', 'env', 'deploy/web', 'C=c')
      await shop('scale', 'deploy/web', '--replicas=5')
      expect(await shop('get', 'deploy/web', '--subresource=scale')).to.match(
        /^NAME +DESIRED +AVAILABLE +AGE\nweb +5 +\d+ /,
      )
      expect(await get('deploy/web', 'spec.replicas')).to.equal(5)
      await shop('scale', 'deploy/web', '--current-replicas=5', '--replicas=1')
      expect(await refused(['-n', 'shop', 'scale', 'deploy/web', '--current-replicas=5', '--replicas=2'])).to.match(
        /Expected replicas/i,
      )
      await shop('rollout', 'resume', 'deploy/web')
      await shop('rollout', 'restart', 'deploy/web')
      await acme.kubectl(['-n', 'shop', 'replace', '-f', '-'], {
        input: JSON.parse(await shop('get', 'cm', 'web', '-o', 'json')) as object,
      })
    })

    it('refuses to replace with an older revision, as a conflict', async () => {
      const old = JSON.parse(await shop('get', 'cm', 'web', '-o', 'json')) as object
      await shop('annotate', 'cm', 'web', 'newer=yes')
      expect(await refused(['-n', 'shop', 'replace', '-f', '-'], JSON.stringify(old))).to.match(
        /Error from server \(Conflict\).*the object has been modified/,
      )
    })

    it('gives every object from generateName its own name', async () => {
      const input = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'gen-' } }
      const names = new Set<string>()
      for (let i = 0; i < 3; i++)
        names.add((await acme.kubectl(['-n', 'shop', 'create', '-o', 'name', '-f', '-'], { input })).stdout)
      expect(names).to.have.property('size', 3)
      for (const name of names) expect(name).to.match(/^configmap\/gen-[a-z0-9]{5}\n$/)
    })

    it('refuses a second object of the same name: AlreadyExists', async () => {
      expect(await refused(['-n', 'shop', 'create', 'cm', 'web'])).to.include('configmaps "web" already exists')
      expect(await refused(['-n', 'gone', 'create', 'cm', 'web'])).to.include('namespaces "gone" not found')
      expect(await refused(['-n', 'shop', 'create', 'cm', 'Not_A_Name'])).to.match(/Invalid|invalid/)
    })
  })

  describe('describe, explain and discovery', () => {
    for (const what of [
      'deploy/web',
      'svc/web',
      'cm/web',
      'secret/web',
      'sa/web',
      'ing/web',
      'cronjob/web',
      'pvc/web',
      'role/web',
      'rolebinding/web',
      'ns/shop',
    ])
      it(`describe ${what}`, async () => {
        expect(await shop('describe', what)).to.match(/^Name: +(web|shop)\n/)
      })

    it('explains the schema to any depth', async () => {
      expect(await shop('explain', 'deployment.spec.template.spec.containers.image')).to.match(
        /FIELD: image <string>[\s\S]*Container image name/,
      )
      expect(await shop('explain', 'ingress', '--recursive')).to.match(/pathType/)
    })

    it('lists api-resources and api-versions, with short names and categories', async () => {
      const resources = (await acme.kubectl(['api-resources', '--no-headers'])).stdout
      expect(resources.trim().split('\n').length).to.be.greaterThan(55)
      expect(resources).to.match(/configmaps +cm +v1 +true +ConfigMap/)
      expect((await acme.kubectl(['api-resources', '--categories=all', '-o', 'name'])).stdout).to.include(
        'deployments.apps',
      )
      expect((await acme.kubectl(['api-versions'])).stdout).to.match(/^apps\/v1$/m)
      expect((await acme.kubectl(['version', '-o', 'json'])).stdout).to.match(/"serverVersion"/)
    })

    it('auth whoami and can-i', async () => {
      expect((await acme.kubectl(['auth', 'whoami', '-o', 'json'])).stdout).to.include('"username": "admin"')
      expect((await acme.kubectl(['auth', 'can-i', 'delete', 'nodes'])).stdout.trim()).to.equal('yes')
      const asWeb = ['--as=system:serviceaccount:shop:web']
      const response = await acme.kubectl(['auth', 'can-i', 'list', 'cm', '-n', 'shop', ...asWeb], {
        expectCode: 'any',
      })
      expect(response.stdout.trim(), response.stderr).to.equal('yes')
      const no = await acme.kubectl(['auth', 'can-i', 'delete', 'cm', '-n', 'shop', ...asWeb], { expectCode: 1 })
      expect(no.stdout.trim()).to.equal('no')
      expect((await acme.kubectl(['auth', 'can-i', '--list'])).stdout).to.match(/\*\.\* +\[\] +\[\] +\[\*\]/)
    })
  })

  describe('end', () => {
    it('delete waits until the object is gone', async () => {
      await shop('delete', 'deploy,svc,ing,cronjob', '--all')
      expect(await shop('get', 'deploy,svc,ing,cronjob', '-o', 'name')).to.equal('')
    })

    it('is held by finalizers until they are removed', async () => {
      await acme.kubectl(['-n', 'shop', 'create', '-f', '-'], {
        input: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'held', finalizers: ['test.dev/hold'] } },
      })
      await shop('delete', 'cm', 'held', '--wait=false')
      expect(await get('cm/held', 'metadata.deletionTimestamp')).to.be.a('string')
      const waiting = shop('wait', '--for=delete', 'cm/held', '--timeout=20s')
      await shop('patch', 'cm', 'held', '--type=merge', '-p', '{"metadata":{"finalizers":null}}')
      // It prints nothing if it asks for the first time when the object is gone already.
      expect((await waiting).trim()).to.be.oneOf(['', 'configmap/held condition met'])
      expect(await refused(['-n', 'shop', 'get', 'cm', 'held'])).to.include('configmaps "held" not found')
    })

    it('of a namespace deletes all its content', async () => {
      await acme.kubectl(['create', 'namespace', 'full'])
      await acme.kubectl(['-n', 'full', 'apply', '-f', '-'], {
        input: deployment.replaceAll('namespace: shop', 'namespace: full'),
      })
      await acme.kubectl(['delete', 'namespace', 'full', '--timeout=30s'])
      expect(await refused(['get', 'namespace', 'full'])).to.include('namespaces "full" not found')
      await acme.kubectl(['create', 'namespace', 'full'])
      const left = await acme.kubectl([
        '-n',
        'full',
        'get',
        'deploy,svc,secret,ing,cronjob,pvc,role,rolebinding',
        '-o',
        'name',
      ])
      expect(left.stdout).to.equal('')
    })

    it('of the default namespaces is refused', async () => {
      expect(await refused(['delete', 'namespace', 'default'])).to.match(/Forbidden.*this namespace may not be deleted/)
    })
  })
})
