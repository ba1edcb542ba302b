// Snapshots of logical clusters, copies and restores, beside a running `kcp start`, as people use them.
import { expect } from 'chai'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateIdentity, identityToRecipient } from 'age-encryption'
import { ensurePrograms, runCommand, runKcp, waitFor, type CommandResult } from '#test/support/index.ts'
import { at } from './json.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import { openRawClient } from './raw-client.ts'

describe('a snapshot of a logical cluster', function () {
  this.timeout(120_000)
  let kcp: KcpInstance
  let acme: Tenant
  let folder: string
  let file: string

  const run = (...args: string[]): Promise<CommandResult> => runKcp(args, { expectCode: 'any' })
  const withRoot = (...args: string[]): Promise<CommandResult> => run(...args, '--root-dir', kcp.rootDir)
  const create = async (tenant: Tenant, path: string, body: object): Promise<Record<string, unknown>> => {
    const response = await tenant.http.request('POST', `${tenant.base}${path}`, { body })
    expect(response.status, response.text).to.equal(201)
    return response.json()
  }
  const uidOf = (object: unknown): string => String(at(object, 'metadata.uid'))

  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
    folder = await mkdtemp(join(tmpdir(), 'kcp-snapshots-'))
    file = join(folder, 'acme.kcp.tar.zst')
    await create(acme, '/api/v1/namespaces', { metadata: { name: 'shop' } })
    const widgets = {
      metadata: { name: 'widgets.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'widgets', kind: 'Widget' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: {
              openAPIV3Schema: {
                type: 'object',
                properties: { spec: { type: 'object', properties: { size: { type: 'integer', minimum: 1 } } } },
              },
            },
          },
        ],
      },
    }
    await create(acme, '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', widgets)
    const served = async (): Promise<boolean> =>
      (await acme.http.request('GET', `${acme.base}/apis/example.com/v1/widgets`)).status === 200
    await waitFor(served, { what: 'widgets to be served', deadlineMs: 10_000, intervalMs: 50 })
    await create(acme, '/apis/example.com/v1/namespaces/shop/widgets', {
      apiVersion: 'example.com/v1',
      kind: 'Widget',
      metadata: { name: 'one' },
      spec: { size: 3 },
    })
    await create(acme, '/api/v1/namespaces/shop/secrets', { metadata: { name: 'key' }, stringData: { k: 'treasure' } })
    const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'c' }] } }
    const web = await create(acme, '/apis/apps/v1/namespaces/shop/deployments', {
      metadata: { name: 'web' },
      spec: { selector: { matchLabels: { a: 'b' } }, template },
    })
    // An owner that is created after its dependent, and that the garbage collector must find all the same.
    await create(acme, '/api/v1/namespaces/shop/configmaps', {
      metadata: {
        name: 'a-dependent',
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: uidOf(web) }],
      },
      data: { about: uidOf(web) },
    })
    await acme.kubectl(['delete', 'clusterrole', 'view', '--wait=false'])
    await acme.kubectl(['label', 'namespace', 'default', 'kept=yes'])
  })
  after(async () => {
    await kcp[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  it('is a file that stock tools open and check, and never overwrites another', async () => {
    const { code, stdout, stderr } = await withRoot('snapshot', 'create', 'acme', '-o', file)
    expect([code, stderr]).to.deep.equal([0, 'it has 1 Secrets in plain text; --recipient age1... encrypts the file\n'])
    expect(stdout).to.match(/acme\.kcp\.tar\.zst: [0-9]+ objects at revision [0-9]+/)
    const sums = await runCommand(
      'bash',
      [
        '-c',
        `mkdir x && tar --zstd -xf ${file} -C x && cd x && sha256sum --quiet -c checksums.sha256 && cat objects/widgets.example.com.ndjson`,
      ],
      { cwd: folder },
    )
    expect(JSON.parse(sums.stdout)).to.deep.include({ kind: 'Widget', spec: { size: 3 } })
    expect((await withRoot('snapshot', 'create', 'acme', '-o', file)).stderr).to.match(
      /exists already; -o names another file/,
    )
    expect((await run('snapshot', 'verify', file)).stderr).to.equal('it is whole: every checksum fits\n')
    const list = await run('snapshot', 'list', folder)
    expect(list.stdout.split('\n')[1]).to.match(/^acme +20.*acme\.kcp\.tar\.zst$/)
  })

  it('that was changed or cut off restores nothing', async () => {
    const bytes = await readFile(file)
    const broken = join(folder, 'broken')
    await writeFile(broken, bytes.subarray(0, bytes.length - 100))
    const { code, stderr } = await withRoot('snapshot', 'restore', broken, '--as', 'broken')
    expect(code).to.equal(1)
    expect(stderr).to.match(/^kcp: ".*broken": it is not a whole snapshot/)
    expect((await withRoot('list', '-o', 'name')).stdout).not.to.include('broken')
  })

  it('becomes a new logical cluster with the same objects under uids of their own', async () => {
    const { code, stdout, stderr } = await withRoot('snapshot', 'restore', file, '--as', 'again')
    expect([code, stderr]).to.deep.equal([0, ''])
    expect(stdout).to.match(/^"again" is there: [0-9]+ objects/)
    const diff = await withRoot('snapshot', 'diff', file, 'again', '-o', 'json')
    const found = JSON.parse(diff.stdout) as { resource: string }[]
    expect(found.filter(({ resource }) => resource !== 'events')).to.deep.equal([])
  })

  it('is copied by spec.source, with its garbage collection, custom resources and deletions', async () => {
    const { code, stdout, stderr } = await withRoot('create', 'copy', '--from', 'acme')
    expect([code, stderr]).to.deep.equal([0, ''])
    expect(stdout).to.include('logicalcluster.kcp.dev/copy created')
    const copy = await inside('copy')
    const read = async (path: string) => (await kcp.admin.http.request('GET', `/clusters/copy${path}`)).json()
    const [web, dependent, acmeWeb] = [
      await read('/apis/apps/v1/namespaces/shop/deployments/web'),
      await read('/api/v1/namespaces/shop/configmaps/a-dependent'),
      (await acme.http.request('GET', `${acme.base}/apis/apps/v1/namespaces/shop/deployments/web`)).json(),
    ]
    expect(uidOf(web)).not.to.equal(uidOf(acmeWeb))
    expect(at(dependent, 'metadata.ownerReferences.0.uid')).to.equal(uidOf(web))
    // Data are never changed, even if they look like a uid.
    expect(at(dependent, 'data.about')).to.equal(uidOf(acmeWeb))
    expect(await copy('get', 'clusterrole', 'view')).to.match(/not found/)
    expect(await copy('get', 'namespace', 'default', '-o', 'jsonpath={.metadata.labels.kept}')).to.equal('yes')
    expect(await copy('-n', 'shop', 'get', 'widgets', '-o', 'name')).to.equal('widget.example.com/one\n')
    await copy('-n', 'shop', 'delete', 'deployment', 'web', '--wait=false')
    const collected = async (): Promise<boolean> =>
      (await kcp.admin.http.request('GET', '/clusters/copy/api/v1/namespaces/shop/configmaps/a-dependent')).status ===
      404
    await waitFor(collected, { what: 'the dependent to be collected', deadlineMs: 20_000, intervalMs: 50 })
    const original = await acme.http.request('GET', `${acme.base}/api/v1/namespaces/shop/configmaps/a-dependent`)
    expect(original.status).to.equal(200)
  })

  it('goes back into its logical cluster: clients see each change, uids stay, later objects go', async () => {
    const path = `${acme.base}/api/v1/namespaces/shop/configmaps`
    const before = (await acme.http.request('GET', `${path}/a-dependent`)).json()
    await create(acme, '/api/v1/namespaces/shop/configmaps', { metadata: { name: 'later' } })
    await acme.kubectl(['-n', 'shop', 'patch', 'configmap', 'a-dependent', '-p', '{"data":{"about":"changed"}}'])
    await acme.kubectl(['-n', 'shop', 'delete', 'widgets', 'one'])
    const told = await withRoot('snapshot', 'restore', file, '--into', 'acme')
    expect(told.stdout).to.match(/would become as it was[^]*do it: {2}the same command with --yes\n$/)
    expect((await acme.http.request('GET', `${path}/later`)).status).to.equal(200)
    const revision = String(at((await acme.http.request('GET', path)).json(), 'metadata.resourceVersion'))
    await using watch = await acme.http.watch(`${path}?watch=1&resourceVersion=${revision}`)
    const { code, stdout, stderr } = await withRoot('snapshot', 'restore', file, '--into', 'acme', '--yes')
    expect([code, stderr]).to.deep.equal([0, ''])
    expect(stdout).to.match(/^"acme" is as it was: .* 1 created, 1 changed/)
    const seen = [await watch.next(), await watch.next()].map((event) => [event?.type, event?.object.metadata.name])
    expect(seen).to.have.deep.members([
      ['DELETED', 'later'],
      ['MODIFIED', 'a-dependent'],
    ])
    const after = (await acme.http.request('GET', `${path}/a-dependent`)).json()
    expect([uidOf(after), at(after, 'data.about')]).to.deep.equal([uidOf(before), at(before, 'data.about')])
    const diff = await withRoot('snapshot', 'diff', file, 'acme', '-o', 'json')
    const found = JSON.parse(diff.stdout) as { resource: string }[]
    expect(found.filter(({ resource }) => resource !== 'events')).to.deep.equal([])
    const other = await withRoot('snapshot', 'restore', file, '--into', 'copy', '--yes')
    expect(other.stderr).to.match(/is a snapshot of another logical cluster \(acme, id /)
  })

  it('keeps its users waiting until all objects are there', async () => {
    const spec = { source: { upload: {} }, owners: [{ kind: 'User', name: 'kcp-admin' }] }
    const lc = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name: 'half' }, spec }
    await create(kcp.admin, '/apis/kcp.dev/v1alpha1/logicalclusters', lc)
    const ready = async (): Promise<unknown> => {
      const { stdout } = await kcp.admin.kubectl(['get', 'lc', 'half', '-o', 'json'])
      return at(JSON.parse(stdout), 'status.conditions.0')
    }
    await waitFor(async () => at(await ready(), 'reason') === 'Filling', {
      what: 'condition Ready',
      deadlineMs: 10_000,
      intervalMs: 50,
    })
    expect(at(await ready(), 'message')).to.equal('it waits for its objects: kcp snapshot restore FILE --as half')
    const half = await inside('half')
    expect(await half('get', '--raw', '/clusters/half/api/v1/namespaces')).to.match(
      /"half" is not whole yet: it waits for its objects/,
    )
    for (const source of [{ logicalClusterRef: { name: 'acme' } }, null]) {
      const patch = JSON.stringify({ spec: { source } })
      const changed = await kcp.admin.kubectl(['patch', 'lc', 'half', '--type=merge', '-p', patch], {
        expectCode: 'any',
      })
      expect(changed.stderr).to.match(
        /the source of a logical cluster (does not change|is given when it is created)|exactly one of/,
      )
    }
    const missing = await withRoot('create', 'orphan', '--from', 'nobody')
    expect(missing.stderr).to.match(/there is no LogicalCluster "nobody"/)
  })

  it('is for the admins of a logical cluster, and only the installation puts objects', async () => {
    expect((await acme.http.request('GET', `${acme.base}/snapshot`)).status).to.equal(200)
    await acme.kubectl(['create', 'serviceaccount', 'reader', '-n', 'shop'])
    await acme.kubectl(['create', 'clusterrolebinding', 'reader', '--clusterrole=edit', '--serviceaccount=shop:reader'])
    const token = (await acme.kubectl(['-n', 'shop', 'create', 'token', 'reader'])).stdout.trim()
    const headers = ['authorization', `Bearer ${token}`]
    await using reader = openRawClient({ port: kcp.port })
    expect((await reader.request('GET', '/clusters/acme/snapshot', { headers })).status).to.equal(403)
    const other = await kcp.tenant('other')
    expect((await other.http.request('GET', '/clusters/acme/snapshot')).status).to.be.oneOf([401, 403])
    const body = { objects: [{ resource: 'configmaps', object: forged('ConfigMap', 'v1') }] }
    const refused = await acme.http.request('POST', `${acme.base}/snapshot`, { body })
    expect([refused.status, at(refused.json(), 'message')]).to.deep.equal([
      403,
      'logicalclusters.kcp.dev "acme" is forbidden: only admins of the installation restore snapshots: kcp snapshot restore',
    ])
    expect(
      (await acme.http.request('GET', `${acme.base}/api/v1/namespaces/default/configmaps/forged`)).status,
    ).to.equal(404)
  })

  it('puts no object that its kind does not allow, and none of a kind that is not served', async () => {
    const put = (objects: object[]) =>
      kcp.admin.http.request('POST', '/clusters/acme/snapshot', { body: { objects, validate: true } })
    const bad = [
      { resource: 'deployments.apps', object: { ...forged('Deployment', 'apps/v1'), spec: {} } },
      { resource: 'configmaps', object: forged('Secret', 'v1') },
      { resource: 'nonsense.example.com', object: forged('Nonsense', 'example.com/v1') },
      { resource: 'widgets.example.com', object: { ...forged('Widget', 'example.com/v1'), spec: { size: 0 } } },
      { resource: 'configmaps', object: { ...forged('ConfigMap', 'v1'), metadata: { name: 'Not Allowed', uid: 'x' } } },
    ]
    for (const item of bad) {
      const response = await put([item])
      expect(response.status, response.text).to.equal(422)
    }
    for (const body of [[], { objects: [1] }, { objects: [{ resource: '../x', object: forged('ConfigMap', 'v1') }] }]) {
      const response = await kcp.admin.http.request('POST', '/clusters/acme/snapshot', { body })
      expect(response.status, response.text).to.equal(400)
    }
  })

  it('leaves an object alone that is there already, where only new ones are to be put', async () => {
    const object = forged('ConfigMap', 'v1')
    const path = `${acme.base}/api/v1/namespaces/default/configmaps`
    const created = await acme.http.request('POST', path, {
      body: { metadata: { name: object.metadata.name }, data: { by: 'its user' } },
    })
    expect(created.status, created.text).to.equal(201)
    const body = { objects: [{ resource: 'configmaps', object }], onlyNew: true }
    const response = await kcp.admin.http.request('POST', '/clusters/acme/snapshot', { body })
    expect(response.status, response.text).to.equal(409)
    // A restore that another one has overtaken comes too late: users may have written since.
    const late = { objects: body.objects, whileFilling: true }
    const refused = await kcp.admin.http.request('POST', '/clusters/acme/snapshot', { body: late })
    expect([refused.status, refused.json()['message']].join(' ')).to.match(/^409 .*it is open to its users already/)
    const now = await acme.http.request('GET', `${path}/${object.metadata.name}`)
    expect(now.json()).to.deep.equal(created.json())
    await acme.http.request('DELETE', `${path}/${object.metadata.name}`)
  })

  it('is encrypted for the keys of age that it is given', async () => {
    const identity = await generateIdentity()
    const key = join(folder, 'key.txt')
    await writeFile(key, `# created: today\n${identity}\n`)
    const sealed = join(folder, 'acme.kcp.tar.zst.age')
    const made = await withRoot(
      'snapshot',
      'create',
      'acme',
      '-o',
      sealed,
      '--recipient',
      await identityToRecipient(identity),
    )
    expect([made.code, made.stderr]).to.deep.equal([0, ''])
    expect((await readFile(sealed)).includes('treasure')).to.equal(false)
    expect((await run('snapshot', 'verify', sealed)).stderr).to.match(/it is encrypted: --identity FILE/)
    expect((await run('snapshot', 'verify', sealed, '--identity', key)).code).to.equal(0)
    const restored = await withRoot('snapshot', 'restore', sealed, '--as', 'unsealed', '--identity', key)
    expect([restored.code, restored.stderr]).to.deep.equal([0, ''])
  })

  it('of each logical cluster is in a backup, from which another installation begins with the same ids', async () => {
    const backup = join(folder, 'backup')
    const made = await withRoot('backup', '-o', backup)
    expect(made.code, made.stderr).to.equal(0)
    expect(made.stdout).to.match(/: [0-9]+ logical clusters, /)
    expect((await withRoot('backup', '-o', backup)).stderr).to.match(/exists already/)
    await using empty = await startInstance()
    const there = (...args: string[]): Promise<CommandResult> => run(...args, '--root-dir', empty.rootDir)
    const first = await there('restore', backup)
    expect([first.code, first.stderr], first.stdout).to.deep.equal([0, ''])
    const idsOf = async ({ admin }: KcpInstance): Promise<unknown[]> => {
      const path = ['get', 'lc', '-o', 'jsonpath={range .items[*]}{.metadata.name} {.status.id}{"\\n"}{end}']
      return (await admin.kubectl(path)).stdout.split('\n').sort()
    }
    const before = await idsOf(kcp)
    const same = async (): Promise<boolean> => JSON.stringify(await idsOf(empty)) === JSON.stringify(before)
    await waitFor(same, { what: 'the same ids', deadlineMs: 20_000, intervalMs: 200 })
    for (const name of ['acme', 'copy']) {
      const diff = await there('snapshot', 'diff', join(backup, 'clusters', `${name}.kcp.tar.zst`), name, '-o', 'json')
      const found = JSON.parse(diff.stdout) as { resource: string; name: string }[]
      // The other installation has an authority of its own, which kcp writes there.
      const isOwn = ({ resource, name }: (typeof found)[number]): boolean =>
        resource === 'events' || name === 'kube-root-ca.crt'
      expect(found.filter((one) => !isOwn(one))).to.deep.equal([])
    }
    const again = await there('restore', backup)
    expect([again.code, again.stderr]).to.deep.equal([0, ''])
    const occupied = await withRoot('restore', backup)
    expect(occupied.stderr).to.match(/logical clusters of the backup exist already, such as "/)
  })

  it('of each logical cluster is restored by one command at a time, also where it was deleted in the same process', async () => {
    const backup = join(folder, 'backup-for-two')
    expect((await withRoot('backup', '-o', backup)).code).to.equal(0)
    await using empty = await startInstance()
    const { http } = empty.admin
    const there = (...args: string[]): Promise<CommandResult> => run(...args, '--root-dir', empty.rootDir)
    const both = await Promise.all([there('restore', backup), there('restore', backup)])
    // The second one is refused, or it waits for the end of the first and finds all of it.
    for (const { code, stderr } of both)
      if (code !== 0) expect(stderr).to.match(/another kcp restore runs \(process [0-9]+ on /)
    expect(both.filter(({ code }) => code === 0)).not.to.deep.equal([])
    const diff = await there('snapshot', 'diff', join(backup, 'clusters', 'acme.kcp.tar.zst'), 'acme', '-o', 'json')
    const found = JSON.parse(diff.stdout) as { resource: string; name: string }[]
    const isOwn = ({ resource, name }: (typeof found)[number]): boolean =>
      resource === 'events' || name === 'kube-root-ca.crt'
    expect(found.filter((one) => !isOwn(one))).to.deep.equal([])
    // Deleted and restored in the same process: the id is served again, with what was saved and nothing else.
    const maps = '/clusters/acme/api/v1/namespaces/shop/configmaps'
    expect((await http.request('POST', maps, { body: { metadata: { name: 'later' } } })).status).to.equal(201)
    await empty.admin.kubectl(['delete', 'lc', 'acme'])
    const back = await there('restore', backup)
    expect([back.code, back.stderr]).to.deep.equal([0, ''])
    const statuses = ['a-dependent', 'later'].map(async (name) => (await http.request('GET', `${maps}/${name}`)).status)
    expect(await Promise.all(statuses)).to.deep.equal([200, 404])
    const widget = '/clusters/acme/apis/example.com/v1/namespaces/shop/widgets/one'
    expect((await http.request('GET', widget)).status).to.equal(200)
    const lease = `${empty.admin.base}/apis/coordination.k8s.io/v1/namespaces/default/leases/kcp-restore`
    const headers = ['content-type', 'application/merge-patch+json']
    let leaseDurationSeconds = 15
    const renew = async (): Promise<void> => {
      const body = { spec: { holderIdentity: 'another', leaseDurationSeconds: leaseDurationSeconds++ } }
      const { status, text } = await http.request('PATCH', lease, { body, headers })
      expect(status, text).to.equal(200)
    }
    await renew()
    const renewing = setInterval(() => void renew(), 500)
    try {
      const refused = await there('restore', backup)
      expect(refused.stderr).to.match(/another kcp restore runs \(another\): wait for its end/)
    } finally {
      clearInterval(renewing)
    }
  })

  it('has objects of the largest size', async () => {
    const large = await kcp.tenant('large')
    const schema = {
      type: 'object',
      properties: { spec: { type: 'object', properties: { text: { type: 'string' } } } },
    }
    await create(large, '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      metadata: { name: 'texts.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Cluster',
        names: { plural: 'texts', kind: 'Text' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
      },
    })
    const path = '/apis/example.com/v1/texts'
    const served = async (): Promise<boolean> =>
      (await large.http.request('GET', `${large.base}${path}`)).status === 200
    await waitFor(served, { what: 'texts to be served', deadlineMs: 10_000, intervalMs: 50 })
    const textOf = (length: number) => ({
      apiVersion: 'example.com/v1',
      kind: 'Text',
      spec: { text: 'x'.repeat(length) },
    })
    const small = JSON.stringify(await create(large, path, { ...textOf(1), metadata: { name: 'small' } }))
    // As it is stored, it has just about the 3 MiB that a request may have; around it, a restore has more.
    const length = 3 * 1024 * 1024 - small.length
    await create(large, path, { ...textOf(length), metadata: { name: 'large' } })
    const saved = join(folder, 'large.kcp.tar.zst')
    expect((await withRoot('snapshot', 'create', 'large', '-o', saved)).code).to.equal(0)
    const { code, stderr } = await withRoot('snapshot', 'restore', saved, '--as', 'large-again')
    expect([code, stderr]).to.deep.equal([0, ''])
    const there = (await kcp.admin.http.request('GET', `/clusters/large-again${path}/large`)).json()
    expect(String(at(there, 'spec.text'))).to.have.length(length)
  })

  /** Runs kubectl in a logical cluster; returns all its output. */
  async function inside(name: string): Promise<(...args: string[]) => Promise<string>> {
    const { kubectl } = await ensurePrograms(['kubectl'])
    return async (...args) => {
      const { stdout, stderr } = await run('connect', name, '--root-dir', kcp.rootDir, '--', kubectl, ...args)
      return stdout + stderr
    }
  }

  function forged(kind: string, apiVersion: string) {
    return {
      kind,
      apiVersion,
      metadata: { name: 'forged', namespace: 'default', uid: 'f0f0f0f0-0000-4000-8000-000000000000' },
    }
  }
})
