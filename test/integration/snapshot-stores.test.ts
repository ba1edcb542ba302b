// LogicalClusterSnapshots and SnapshotStores beside a running `kcp start`, with a real object store over TLS.
import { expect } from 'chai'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { mkdtemp, mkdir, rm } from 'node:fs/promises'
import { connect, createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { zstdDecompressSync } from 'node:zlib'
import { generateIdentity, identityToRecipient } from 'age-encryption'
import { restoredFromAnnotation } from '#crds/index.ts'
import { compressed, readSnapshot, withVolumes } from '#snapshot/index.ts'
import { runKcp, startObjectStore, waitFor, type CommandResult, type ObjectStore } from '#test/support/index.ts'
import { at } from './json.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

describe('a LogicalClusterSnapshot', function () {
  this.timeout(120_000)
  const bucket = 'snapshots'
  let objects: ObjectStore
  let kcp: KcpInstance
  let acme: Tenant
  let folder: string
  let identity: string

  const run = (...args: string[]): Promise<CommandResult> =>
    runKcp([...args, '--root-dir', kcp.rootDir], { expectCode: 'any', env: objects.env, cwd: folder })
  const apply = async (kind: string, name: string, spec: object, expectCode: number | 'any' = 0): Promise<string> => {
    const object = { apiVersion: 'kcp.dev/v1alpha1', kind, metadata: { name }, spec }
    return (await kcp.admin.kubectl(['apply', '-f', '-'], { input: object, expectCode })).stderr
  }
  const secret = async (name: string, stringData: object, namespace = 'kcp-system'): Promise<void> => {
    const object = { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, stringData }
    await kcp.admin.kubectl(['apply', '-f', '-'], { input: object })
  }
  const get = async (kind: string, name: string): Promise<Record<string, unknown> | undefined> => {
    const response = await kcp.admin.http.request('GET', `/clusters/root/apis/kcp.dev/v1alpha1/${kind}/${name}`)
    return response.status === 404 ? undefined : response.json()
  }
  /** Waits until the condition has this reason; returns its message. */
  const said = async (kind: string, name: string, type: string, reason: string): Promise<string> => {
    const isThere = async (): Promise<object> => {
      const conditions = at(await get(kind, name), 'status.conditions') as object[] | undefined
      const found = conditions?.find((one) => at(one, 'type') === type)
      if (found === undefined || at(found, 'reason') !== reason) throw new Error(JSON.stringify(conditions))
      return found
    }
    const what = `condition ${type} of ${name} to have reason ${reason}`
    return String(at(await waitFor(isThere, { what, deadlineMs: 30_000, intervalMs: 50 }), 'message'))
  }
  const taken = async (name: string, store: string, spec: object = {}): Promise<Record<string, unknown>> => {
    await apply('LogicalClusterSnapshot', name, { logicalCluster: 'acme', store, ...spec })
    await said('logicalclustersnapshots', name, 'Complete', 'Completed')
    return (await get('logicalclustersnapshots', name)) ?? {}
  }
  const s3 = (place: object = {}): object => ({
    bucket,
    prefix: 'kcp',
    endpoint: objects.endpoint,
    certificateAuthority: objects.authority,
    credentialsSecretRef: { name: 'credentials' },
    ...place,
  })
  const stored = (): string[] => {
    const at = join(objects.folderOf(bucket), 'kcp', 'acme')
    return existsSync(at) ? readdirSync(at).sort() : []
  }

  before(async () => {
    objects = await startObjectStore([bucket])
    folder = await mkdtemp(join(tmpdir(), 'kcp-stores-'))
    await mkdir(join(folder, 'snapshots'))
    kcp = await startInstance(['--snapshot-directory', join(folder, 'snapshots')])
    acme = await kcp.tenant('acme')
    await acme.kubectl(['create', 'configmap', 'prices', '--from-literal=apple=1'])
    await acme.kubectl(['create', 'secret', 'generic', 'key', '--from-literal=k=treasure'])
    const claim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'data', namespace: 'default' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    }
    await acme.kubectl(['apply', '-f', '-'], { input: claim })
    await kcp.admin.kubectl(['create', 'namespace', 'kcp-system'], { expectCode: 'any' })
    const { accessKeyId, secretAccessKey } = objects
    await secret('credentials', { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey })
    identity = await generateIdentity()
    await secret('identity', { identity: `# a key\n${identity}\n` })
    const recipients = [await identityToRecipient(identity)]
    await apply('SnapshotStore', 'bucket', { s3: s3() })
    await apply('SnapshotStore', 'folder', { file: { path: 'nightly/acme' } })
    await apply('SnapshotStore', 'sealed', {
      s3: s3({ prefix: 'sealed' }),
      encryption: { recipients, identitySecretRef: { name: 'identity' } },
    })
    await apply('SnapshotStore', 'for-people', { s3: s3({ prefix: 'people' }), encryption: { recipients } })
  })
  after(async () => {
    await kcp[Symbol.asyncDispose]()
    await objects[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  it('is taken into a bucket, and its status, Events and the commands tell of it', async () => {
    expect(await said('snapshotstores', 'bucket', 'Ready', 'Reachable')).to.equal('snapshots can be stored here')
    const made = await run('snapshot', 'create', 'acme', '--store', 'bucket', '--name', 'first')
    expect([made.code, made.stderr], made.stdout).to.deep.equal([0, ''])
    const { status, metadata } = (await get('logicalclustersnapshots', 'first')) ?? {}
    const uid = String(at(metadata, 'uid'))
    const file = `first-${uid.slice(0, 8)}.kcp.tar.zst`
    expect(status).to.deep.include({ phase: 'Completed', attempts: 1, encrypted: false, claims: 1 })
    expect(at(status, 'location')).to.equal(`s3://${bucket}/kcp/acme/${file}`)
    expect(stored()).to.deep.equal([file])
    expect(at(status, 'bytes')).to.equal(readFileSync(join(objects.folderOf(bucket), 'kcp/acme', file)).length)
    const described = (await kcp.admin.kubectl(['describe', 'lcs', 'first'])).stdout
    expect(described).to.match(/Completed.*the data of its 1 PersistentVolumeClaims are not in it/)
    const table = (await kcp.admin.kubectl(['get', 'lcs', 'first'])).stdout
    expect(table).to.match(
      /NAME +LOGICAL CLUSTER +STORE +PHASE +OBJECTS +BYTES +COMPLETED +AGE\nfirst +acme +bucket +Completed/,
    )
    for (const name of ['first', 'lcs/first', `s3://${bucket}/kcp/acme/${file}`]) {
      const verified = await run('snapshot', 'verify', name)
      expect([verified.code, verified.stderr]).to.deep.equal([0, 'it is whole: every checksum fits\n'])
      expect(verified.stdout).to.match(/the data of 1 PersistentVolumeClaims are not in it/)
    }
    expect((await run('snapshot', 'list')).stdout).to.match(/^acme +20.* lcs\/first$/m)
    expect((await run('snapshot', 'list', `s3://${bucket}/kcp`)).stdout).to.match(/^acme +20.*first-.*zst$/m)
    const diff = await run('snapshot', 'diff', 'lcs/first', 'acme', '-o', 'json')
    expect(JSON.parse(diff.stdout)).to.deep.equal([])
  })

  for (const store of ['bucket', 'folder', 'sealed'])
    it(`becomes a logical cluster by spec.source.snapshot, from store "${store}"`, async () => {
      const { status } = await taken(`again-${store}`, store)
      expect(at(status, 'encrypted')).to.equal(store === 'sealed')
      const made = await run('create', `from-${store}`, '--snapshot', `again-${store}`)
      expect([made.code, made.stderr], made.stdout).to.deep.equal([0, ''])
      const copy = await kcp.admin.http.request(
        'GET',
        `/clusters/from-${store}/api/v1/namespaces/default/configmaps/prices`,
      )
      expect(at(copy.json(), 'data')).to.deep.equal({ apple: '1' })
      const object = await get('logicalclusters', `from-${store}`)
      const filled = (at(object, 'metadata.annotations') as Record<string, string>)['kcp.dev/filled-from']
      expect(filled).to.equal(`snapshot again-${store}@${String(at(status, 'revision'))}`)
    })

  it('that only people can decrypt is restored with their key, and says so elsewhere', async () => {
    await taken('sealed', 'for-people')
    await apply('LogicalCluster', 'locked', { source: { snapshot: { name: 'sealed' } } })
    expect(await said('logicalclusters', 'locked', 'Ready', 'SourceNotCopied')).to.match(
      /snapshot "sealed" is encrypted, and store "for-people" names no encryption.identitySecretRef: restore it with kcp snapshot restore sealed --identity FILE/,
    )
    const key = join(folder, 'key.txt')
    writeFileSync(key, identity)
    const restored = await run('snapshot', 'restore', 'sealed', '--as', 'unsealed', '--identity', key)
    expect([restored.code, restored.stderr]).to.deep.equal([0, ''])
    const other = join(folder, 'other.txt')
    writeFileSync(other, await generateIdentity())
    expect((await run('snapshot', 'verify', 'sealed', '--identity', other)).stderr).to.match(
      /it cannot be decrypted with this key/,
    )
    await kcp.admin.kubectl(['delete', 'lc', 'locked'])
  })

  it('that was changed or cut off in its bucket restores nothing', async () => {
    const { metadata } = await taken('tampered', 'bucket')
    const file = join(
      objects.folderOf(bucket),
      'kcp/acme',
      `tampered-${String(at(metadata, 'uid')).slice(0, 8)}.kcp.tar.zst`,
    )
    // A whole snapshot of the same logical cluster, put in the place of another.
    const [first = ''] = stored().filter((name) => name.startsWith('first-'))
    writeFileSync(file, readFileSync(join(objects.folderOf(bucket), 'kcp/acme', first)))
    await apply('LogicalCluster', 'wrong', { source: { snapshot: { name: 'tampered' } } })
    expect(await said('logicalclusters', 'wrong', 'Ready', 'SourceNotCopied')).to.match(
      /what is stored is not what kcp has stored: its checksum is/,
    )
    expect((await run('snapshot', 'verify', 'tampered')).stderr).to.match(/what is stored is not what kcp has stored/)
    truncateSync(file, 100)
    const restored = await run('snapshot', 'restore', 'tampered', '--as', 'cut')
    expect(restored.stderr).to.match(/^kcp: "tampered": (it is not a whole snapshot|what is stored is not)/)
    expect(await get('logicalclusters', 'cut')).to.equal(undefined)
    await kcp.admin.kubectl(['delete', 'lc', 'wrong'])
  })

  it('tells why its store does not take it, and is taken once it does', async () => {
    await secret('wrong', { AWS_ACCESS_KEY_ID: objects.accessKeyId, AWS_SECRET_ACCESS_KEY: 'wrong' })
    await secret('elsewhere', { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' }, 'default')
    await secret('empty', { AWS_ACCESS_KEY_ID: 'a' })
    const ref = (name: string): object => ({ credentialsSecretRef: { name } })
    const stores = [
      ['wrong-key', { s3: s3(ref('wrong')) }, 'CredentialsRefused'],
      ['other-namespace', { s3: s3(ref('elsewhere')) }, 'SecretMissing'],
      ['half-a-key', { s3: s3(ref('empty')) }, 'SecretInvalid'],
      ['no-bucket', { s3: s3({ bucket: 'nothing' }) }, 'BucketMissing'],
      ['no-authority', { s3: s3({ certificateAuthority: undefined }) }, 'StorageUnreachable'],
      ['nobody-there', { s3: s3({ endpoint: 'https://127.0.0.1:1' }) }, 'StorageUnreachable'],
    ] as const
    for (const [name, spec] of stores) await apply('SnapshotStore', name, spec)
    for (const [name, , reason] of stores) await said('snapshotstores', name, 'Ready', reason)
    await apply('LogicalClusterSnapshot', 'waits', { logicalCluster: 'acme', store: 'wrong-key' })
    expect(await said('logicalclustersnapshots', 'waits', 'Complete', 'CredentialsRefused')).to.match(
      /^store "wrong-key": the object store does not take these credentials.*; attempt 1 of 10, the next one in 10 s$/,
    )
    await apply('LogicalClusterSnapshot', 'early', { logicalCluster: 'acme', store: 'later' })
    expect(await said('logicalclustersnapshots', 'early', 'Complete', 'StoreMissing')).to.match(
      /there is no SnapshotStore/,
    )
    await apply('SnapshotStore', 'later', { s3: s3({ prefix: 'later' }) })
    await said('logicalclustersnapshots', 'early', 'Complete', 'Completed')
    await apply('LogicalClusterSnapshot', 'of-nobody', { logicalCluster: 'nobody', store: 'bucket' })
    expect(await said('logicalclustersnapshots', 'of-nobody', 'Complete', 'LogicalClusterMissing')).to.match(
      /there is no LogicalCluster "nobody"/,
    )
  })

  it('is deleted with its object, unless it is to be retained or its store is gone', async () => {
    await taken('short', 'bucket', { ttlSecondsAfterFinished: 1 })
    await taken('kept', 'bucket', { deletionPolicy: 'Retain' })
    await kcp.admin.kubectl(['delete', 'lcs', 'first', 'kept'])
    const gone = async (): Promise<boolean> => (await get('logicalclustersnapshots', 'short')) === undefined
    await waitFor(gone, { what: 'the snapshot to be deleted after its time', deadlineMs: 20_000, intervalMs: 100 })
    const names = stored().map((name) => name.replace(/-[0-9a-f]{8}\..*/, ''))
    expect(names).to.include('kept')
    expect(names).not.to.include.members(['first'])
    expect(names).not.to.include.members(['short'])
    await kcp.admin.kubectl(['delete', 'sst', 'later'])
    await kcp.admin.kubectl(['delete', 'lcs', 'early', '--wait=false'])
    expect(await said('logicalclustersnapshots', 'early', 'Deleted', 'StoreMissing')).to.match(
      /there is no SnapshotStore "later" to delete it from; spec.deletionPolicy: Retain leaves it there/,
    )
    const policy = JSON.stringify({ spec: { deletionPolicy: 'Retain' } })
    await kcp.admin.kubectl(['patch', 'lcs', 'early', '--type=merge', '-p', policy])
    const left = async (): Promise<boolean> => (await get('logicalclustersnapshots', 'early')) === undefined
    await waitFor(left, { what: 'the snapshot to be let go', deadlineMs: 20_000, intervalMs: 100 })
  })

  const claimIn = async (cluster: string): Promise<Record<string, string>> => {
    const path = `/clusters/${cluster}/api/v1/namespaces/default/persistentvolumeclaims/data`
    const claim = (await kcp.admin.http.request('GET', path)).json()
    return (at(claim, 'metadata.annotations') ?? {}) as Record<string, string>
  }

  it('says of each claim whether its volume is kept, and stays while a claim waits for one', async () => {
    const { status } = await taken('volumes', 'folder', { volumes: 'Include' })
    const [volume] = at(status, 'volumes') as object[]
    expect(volume).to.include({ namespace: 'default', claim: 'data', state: 'LeftOut', reason: 'NotBound' })
    const about = await said('logicalclustersnapshots', 'volumes', 'VolumesIncluded', 'SomeLeftOut')
    expect(about).to.match(/^1 claims are without their volume; default\/data: NotBound \(it has no volume/)
    const verified = await run('snapshot', 'verify', 'volumes')
    expect(verified.stdout).to.contain(about)
    const manifest: unknown = JSON.parse((await run('snapshot', 'verify', 'volumes', '-o', 'json')).stdout)
    expect(at(manifest, 'volumes')).to.deep.equal(at(status, 'volumes'))
    expect((await run('create', 'without', '--snapshot', 'volumes')).code).to.equal(0)
    expect(await claimIn('without')).to.not.have.any.keys('kcp.dev/volume-source', 'kcp.dev/volume-in')

    // As if a member had kept it.
    const kept = { ...volume, state: 'Included', member: 'east', name: 'x', driver: 'csi', handle: 'h', content: 'c' }
    const patch = JSON.stringify({ status: { volumes: [kept] } })
    await kcp.admin.kubectl(['patch', 'lcs', 'volumes', '--subresource=status', '--type=merge', '-p', patch])
    const made = await run('snapshot', 'restore', 'volumes', '--as', 'with')
    expect(made.code, made.stderr).to.equal(0)
    expect(made.stdout).to.contain('1 claims get their volumes from snapshots in member clusters')
    expect(await claimIn('with'))
      .to.include({ 'kcp.dev/volume-in': 'east' })
      .and.to.have.property('kcp.dev/volume-source')
    expect(at(await get('logicalclusters', 'with'), 'metadata.annotations')).to.not.have.property(
      restoredFromAnnotation,
    )
    // As while a restore runs.
    const restoring = `${restoredFromAnnotation}=volumes/${String(at(await get('logicalclustersnapshots', 'volumes'), 'metadata.uid'))}`
    await kcp.admin.kubectl(['annotate', 'lc', 'acme', restoring])
    await kcp.admin.kubectl(['delete', 'lcs', 'volumes', '--wait=false'])
    expect(await said('logicalclustersnapshots', 'volumes', 'Deleted', 'InUse')).to.match(/^"acme" is restored from it/)
    await kcp.admin.kubectl(['annotate', 'lc', 'acme', `${restoredFromAnnotation}-`])
    const isFreed = async (): Promise<boolean> =>
      (await said('logicalclustersnapshots', 'volumes', 'Deleted', 'InUse')) === '1 claims get their volumes from it'
    await waitFor(isFreed, { what: 'the snapshot to wait for the claim', deadlineMs: 20_000, intervalMs: 100 })
    await kcp.admin.kubectl(['delete', 'lc', 'with'])
    const gone = async (): Promise<boolean> => (await get('logicalclustersnapshots', 'volumes')) === undefined
    await waitFor(gone, { what: 'the snapshot to be deleted after the last use', deadlineMs: 20_000, intervalMs: 100 })
  })

  it('is made for a copy with volumes, which tells whose volumes are missing', async () => {
    const misused = await run('create', 'copied', '--from', 'acme', '--volumes')
    expect(misused.stderr).to.match(/a copy with volumes needs --from NAME --volumes --store NAME/)
    const made = await run('create', 'copied', '--from', 'acme', '--volumes', '--store', 'folder', '-o', 'json')
    expect(made.stderr).to.match(/1 claims are without their volume; default\/data: NotBound/)
    const source = String(at(JSON.parse(made.stdout), 'spec.source.snapshot.name'))
    expect(source).to.match(/^acme-for-copied-20/)
    expect(at(await get('logicalclustersnapshots', source), 'spec')).to.include({
      ...{ volumes: 'Include', ttlSecondsAfterFinished: 3600 },
    })
  })

  it('names in its file no volume that a restore would believe', async () => {
    const { status, metadata } = await taken('forged', 'folder')
    const stored = await readSnapshotOf(String(at(status, 'location')))
    const victim = { namespace: 'default', claim: 'data', claimUid: stored.claimUid, state: 'Included' } as const
    const forged = compressed(withVolumes(stored.tar, [{ ...victim, member: 'east', driver: 'csi', handle: 'victim' }]))
    writeFileSync(join(folder, 'forged.kcp.tar.zst'), await forged.toArray().then((chunks) => Buffer.concat(chunks)))
    const made = await run('snapshot', 'restore', 'forged.kcp.tar.zst', '--as', 'thief')
    expect(made.code, made.stderr).to.equal(0)
    expect(made.stderr).to.match(/it names 1 snapshots of volumes, which were not used/)
    expect(await claimIn('thief')).to.not.have.any.keys('kcp.dev/volume-source', 'kcp.dev/volume-in')
    // In the place of the stored one, it restores nothing at all.
    writeFileSync(String(at(status, 'location')), readFileSync(join(folder, 'forged.kcp.tar.zst')))
    await apply('LogicalCluster', 'robber', { source: { snapshot: { name: String(at(metadata, 'name')) } } })
    expect(await said('logicalclusters', 'robber', 'Ready', 'SourceNotCopied')).to.match(/its checksum is/)
    await kcp.admin.kubectl(['delete', 'lc', 'robber'])
  })

  it('and its store take no value that leads elsewhere, and do not change what stored snapshots depend on', async () => {
    for (const [spec, says] of [
      [{ file: { path: '../etc' } }, /spec.file.path/],
      [{ file: { path: '/etc' } }, /spec.file.path/],
      [{ file: { path: 'a/.ssh' } }, /spec.file.path/],
      [{}, /exactly one of file and s3/],
      [{ file: { path: 'a' }, s3: s3() }, /exactly one of file and s3/],
      [{ s3: s3({ prefix: 'a/../b' }) }, /spec.s3.prefix/],
      [{ s3: s3({ endpoint: 'https://user:password@host' }) }, /spec.s3.endpoint/],
      [{ s3: s3({ endpoint: 'http://127.0.0.1:1' }) }, /would send Secrets of tenants in plain text/],
      [{ s3: s3({ credentialsSecretRef: { name: '../default/secrets/elsewhere' } }) }, /credentialsSecretRef.name/],
    ] as const)
      expect(await apply('SnapshotStore', 'refused', spec, 'any')).to.match(says)
    for (const [name, spec] of [
      ['bucket', { s3: s3({ bucket: 'another' }) }],
      ['bucket', { s3: s3({ prefix: undefined }) }],
      ['bucket', { file: { path: 'a' } }],
      ['folder', { file: { path: 'b' } }],
    ] as const)
      expect(await apply('SnapshotStore', name, spec, 'any')).to.match(/snapshots are there|does not change/)
    expect(
      await apply('LogicalClusterSnapshot', 'kept-2', { logicalCluster: 'a/../b', store: 'bucket' }, 'any'),
    ).to.match(/spec.logicalCluster/)
  })

  it('is not served in logical clusters of tenants', async () => {
    for (const kind of ['snapshotstores', 'logicalclustersnapshots', 'snapshotschedules']) {
      const response = await acme.http.request('GET', `${acme.base}/apis/kcp.dev/v1alpha1/${kind}`)
      expect(response.status).to.equal(404)
    }
  })

  describe('of a SnapshotSchedule', () => {
    const schedule = (spec: object): object => ({
      schedule: '15 0 1 * *',
      selector: { matchLabels: { tier: 'gold' } },
      store: 'folder',
      startingDeadlineSeconds: 31_536_000,
      retention: { last: 1 },
      ...spec,
    })
    const made = async (): Promise<{ name: string; phase: unknown }[]> => {
      const path =
        '/clusters/root/apis/kcp.dev/v1alpha1/logicalclustersnapshots?labelSelector=kcp.dev/snapshot-schedule=nightly'
      const { items } = (await kcp.admin.http.request('GET', path)).json() as unknown as { items: object[] }
      return items.map((one) => ({ name: String(at(one, 'metadata.name')), phase: at(one, 'status.phase') }))
    }
    /** Runs the schedule as if its last run had been years ago. */
    const runNow = async (spec: object): Promise<void> => {
      await apply('SnapshotSchedule', 'nightly', schedule({ ...spec, suspend: true }))
      await said('snapshotschedules', 'nightly', 'Active', 'Suspended')
      const status = JSON.stringify({ status: { lastScheduleTime: '2020-01-01T00:00:00Z' } })
      await kcp.admin.kubectl(['patch', 'sns', 'nightly', '--subresource=status', '--type=merge', '-p', status])
      await apply('SnapshotSchedule', 'nightly', schedule(spec))
      await said('snapshotschedules', 'nightly', 'Active', 'Scheduled')
    }
    const until = async (what: string, test: (found: Awaited<ReturnType<typeof made>>) => boolean): Promise<void> => {
      const holds = async (): Promise<boolean> => {
        const found = await made()
        if (!test(found)) throw new Error(JSON.stringify(found))
        return true
      }
      await waitFor(holds, { what, deadlineMs: 30_000, intervalMs: 50 })
    }
    let first: string

    it('are taken of the logical clusters that it selects, each once', async () => {
      await kcp.admin.kubectl(['label', 'lc', 'acme', 'tier=gold'])
      await runNow({})
      await until('one snapshot of acme', (found) => found.length === 1 && found[0]?.phase === 'Completed')
      first = (await made())[0]?.name ?? ''
      expect(first).to.match(/^nightly-acme-[0-9]+$/)
      expect(at(await get('snapshotschedules', 'nightly'), 'status')).to.deep.include({ selected: 1, skipped: 0 })
      // A run that is repeated, as after a crash in its middle, makes no second one.
      await runNow({})
      expect((await made()).map(({ name }) => name)).to.deep.equal([first])
    })

    it('are deleted by its retention when a newer one is whole, and not before', async () => {
      await apply('SnapshotStore', 'refusing', { s3: s3({ bucket: 'nothing' }) })
      await runNow({ schedule: '16 0 * * *', store: 'refusing', deletionPolicy: 'Retain' })
      await until('one that is not taken', (found) => found.length === 2)
      const second = (await made()).find(({ name }) => name !== first)?.name ?? ''
      await said('logicalclustersnapshots', second, 'Complete', 'BucketMissing')
      expect((await made()).map(({ name }) => name)).to.include(first)
      // While it is not taken, the next run leaves the logical cluster out.
      await runNow({ schedule: '17 0 * * *' })
      const { skipped } = at(await get('snapshotschedules', 'nightly'), 'status') as { skipped?: number }
      expect([skipped, (await made()).length]).to.deep.equal([1, 2])
      await kcp.admin.kubectl(['delete', 'lcs', second])
      await runNow({ schedule: '18 0 * * *' })
      await until('the newer one alone', (found) => found.length === 1 && found[0]?.phase === 'Completed')
      expect((await made())[0]?.name).not.to.equal(first)
    })

    it('are not made up for after its deadline, and not for a time or a zone that does not exist', async () => {
      const before = await made()
      await runNow({ schedule: '19 0 1 * *', startingDeadlineSeconds: 10 })
      const events = (await kcp.admin.kubectl(['describe', 'sns', 'nightly'])).stdout
      expect(events).to.match(/RunMissed.*was missed: it is more than 10 s ago/)
      expect(await made()).to.deep.equal(before)
      await apply('SnapshotSchedule', 'nowhere', schedule({ timeZone: 'Mars/Olympus' }))
      expect(await said('snapshotschedules', 'nowhere', 'Active', 'ScheduleInvalid')).to.match(/no time zone "Mars/)
      for (const text of ['61 * * * *', '* * * *', '@every 5m', '0 3 * * funday', '*/0 * * * *', '0 0 32 * *', ''])
        expect(await apply('SnapshotSchedule', 'bad', schedule({ schedule: text }), 'any'), text).to.match(
          /spec.schedule/,
        )
      for (const text of ['@daily', '*/5 0-6,22 1,15 JAN-mar mon-Fri', '0 3 ? * 7'])
        expect(
          await apply('SnapshotSchedule', 'good', schedule({ schedule: text, suspend: true }), 'any'),
          text,
        ).to.equal('')
    })

    it('leave out what has moved to another installation, and say so', async () => {
      const note = { role: 'source', id: 'm', with: 'https://there.example.com', moved: true }
      const metadata = {
        name: 'gone',
        labels: { tier: 'gold', place: 'elsewhere' },
        annotations: { 'kcp.dev/transfer': JSON.stringify(note) },
      }
      const input = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata }
      await kcp.admin.kubectl(['create', '-f', '-'], { input })
      await said('logicalclusters', 'gone', 'Ready', 'Moved')
      await runNow({ schedule: '20 0 * * *' })
      expect(await said('snapshotschedules', 'nightly', 'LeftOut', 'Moved')).to.equal(
        '"gone" has moved to https://there.example.com; a schedule there saves what is written there',
      )
      await until('a snapshot of acme alone', (found) => found.every(({ phase }) => phase === 'Completed'))
      const names = (await made()).map(({ name }) => name.replace(/-[0-9]+$/, ''))
      expect([...new Set(names)]).to.deep.equal(['nightly-acme'])
      await apply('LogicalClusterSnapshot', 'late', { logicalCluster: 'gone', store: 'folder' })
      await said('logicalclustersnapshots', 'late', 'Failed', 'LogicalClusterMoved')
      await apply('SnapshotSchedule', 'elsewhere', schedule({ selector: { matchLabels: { place: 'elsewhere' } } }))
      expect(await said('snapshotschedules', 'elsewhere', 'Active', 'Moved')).to.match(/nothing is taken: "gone"/)
      await kcp.admin.kubectl(['delete', 'lc', 'gone'])
      await runNow({ schedule: '21 0 * * *' })
      const conditions = at(await get('snapshotschedules', 'nightly'), 'status.conditions') as { type: string }[]
      expect(conditions.map(({ type }) => type)).to.deep.equal(['Active'])
    })
  })

  it('is whole after kill -9 in the middle of an upload, and nothing is left of that', async () => {
    // More than two parts, of bytes that do not compress.
    for (let i = 0; i < 16; i++) {
      const object = { metadata: { name: `large-${i}` }, data: { bytes: randomBytes(600_000).toString('base64') } }
      const made = await acme.http.request('POST', `${acme.base}/api/v1/namespaces/default/configmaps`, {
        body: object,
      })
      expect(made.status, made.text).to.equal(201)
    }
    await using link = await stallingLink(objects.port, 7 * 1024 * 1024)
    await apply('SnapshotStore', 'slow', { s3: s3({ prefix: 'slow', endpoint: link.endpoint }) })
    await apply('LogicalClusterSnapshot', 'killed', { logicalCluster: 'acme', store: 'slow' })
    await waitFor(() => link.isStalled(), { what: 'the upload to be half done', deadlineMs: 30_000, intervalMs: 20 })
    await kcp.process.kill()
    link.goOn()
    await kcp.process.start()
    await said('logicalclustersnapshots', 'killed', 'Complete', 'Completed')
    const { status } = (await get('logicalclustersnapshots', 'killed')) ?? {}
    expect(at(status, 'attempts')).to.equal(2)
    expect((await run('snapshot', 'verify', 'killed')).code).to.equal(0)
    const names = readdirSync(join(objects.folderOf(bucket), 'slow'), { recursive: true, encoding: 'utf8' })
    expect(names.filter((name) => name.includes('killed')).length).to.equal(1)
    const uploads = join(objects.folderOf(bucket), '.sgwtmp', 'multipart')
    expect(existsSync(uploads) ? readdirSync(uploads, { recursive: true }) : []).to.deep.equal([])
  })

  it('is not needed for a backup in a bucket, from which another installation begins', async () => {
    const place = `s3://${bucket}/backups/monday`
    const made = await run('backup', '-o', place)
    expect(made.code, made.stderr).to.equal(0)
    expect((await run('backup', '-o', place)).stderr).to.match(/has a backup already; -o names another place/)
    await using empty = await startInstance()
    const restored = await runKcp(['restore', place, '--root-dir', empty.rootDir], {
      expectCode: 'any',
      env: objects.env,
    })
    expect([restored.code, restored.stderr], restored.stdout).to.deep.equal([0, ''])
    const prices = await empty.admin.http.request('GET', '/clusters/acme/api/v1/namespaces/default/configmaps/prices')
    expect(at(prices.json(), 'data')).to.deep.equal({ apple: '1' })
    const noKeys = await runKcp(['restore', place, '--root-dir', empty.rootDir], { expectCode: 'any' })
    expect([noKeys.code, noKeys.stderr]).to.deep.equal([
      2,
      'kcp: s3:// needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and if it is not that of AWS, AWS_ENDPOINT_URL\n',
    ])
  })
})

interface StallingLink extends AsyncDisposable {
  readonly endpoint: string
  isStalled(): boolean
  goOn(): void
}

/** A link to the port that passes so many bytes on, and then none until it goes on. */
async function stallingLink(port: number, passes: number): Promise<StallingLink> {
  let left = passes
  let isOpen = true
  const waiting: (() => void)[] = []
  const server: Server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1')
    for (const socket of [client, upstream]) socket.on('error', () => socket.destroy())
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
    upstream.pipe(client)
    client.on('data', (chunk: Buffer) => {
      left -= chunk.length
      if (left <= 0 && isOpen) isOpen = false
      if (isOpen || left === Infinity) {
        upstream.write(chunk)
        return
      }
      client.pause()
      waiting.push(() => {
        upstream.write(chunk)
        client.resume()
      })
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    endpoint: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    isStalled: () => !isOpen,
    goOn() {
      ;[left, isOpen] = [Infinity, true]
      for (const next of waiting.splice(0)) next()
    },
    async [Symbol.asyncDispose]() {
      server.close()
      await Promise.resolve()
    },
  }
}

/** The archive of a stored snapshot, and the uid of its claim. */
async function readSnapshotOf(file: string): Promise<{ readonly tar: Readable; readonly claimUid: string }> {
  const tar = zstdDecompressSync(readFileSync(file))
  let claimUid = ''
  for await (const item of readSnapshot(Readable.from([tar])))
    if ('bytes' in item && item.resource === 'persistentvolumeclaims')
      claimUid = String(at(JSON.parse(item.bytes.toString()), 'metadata.uid'))
  return { tar: Readable.from([tar]), claimUid }
}
