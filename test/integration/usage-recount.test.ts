// Usage of logical clusters compared with a recount of everything: after random writes of every kind, refused ones among
// them, and kill -9 in the middle of them. Three counts must be equal: what kcp says (metrics, status.usage, refusals),
// a full listing, and the database. A failure names its seed; KCP_TEST_SEED draws the same writes again.
import { expect } from 'chai'
import { join } from 'node:path'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { LogicalCluster } from '#crds/index.ts'
import { objectCharge } from '#store/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { diceOf, type Dice } from '#test/parity/generated/dice.ts'
import { rounds, runKcp, waitFor } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

interface Counted {
  readonly objects: number
  readonly bytes: number
}

const seed = Number(process.env['KCP_TEST_SEED'] ?? Date.now() % 1_000_000)
const clients = 8
const writesOfRound = rounds({ short: 600, long: 4000 })
const within = { deadlineMs: 120_000, intervalMs: 1100 }
/** Room for the random writes; they reach each of these limits now and then. */
const limits = {
  team: { objects: 260, storage: '2Mi', crds: 6 },
  own: { objects: 15, storage: '256Ki', crds: 1 },
}

const core = '/api/v1'
const inNamespace = (dice: Dice): string => `${core}/namespaces/${dice.pick(['default', 'default', 'n0', 'n1'])}`
const nameOf = (dice: Dice, kind: string): string => `${kind}-${dice.below(30)}`
const crdPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const clusterRoles = '/apis/rbac.authorization.k8s.io/v1/clusterroles'
const appsPath = (dice: Dice): string => `/apis/apps/v1/namespaces/${dice.pick(['default', 'n0'])}/deployments`
const textOf = (dice: Dice): string => 'x'.repeat(dice.below(2500))
const merge = ['content-type', 'application/merge-patch+json']

const definition = (plural: string): object => ({
  metadata: { name: `${plural}.example.com` },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural, kind: plural.toUpperCase() },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
})
const deployment = (name: string): object => ({
  metadata: { name },
  spec: {
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'c' }] } },
  },
})

/** A request that may be sent: its method, path below the logical cluster, body, headers. */
type Sent = readonly [method: string, path: string, body?: object | string, headers?: readonly string[]]
const plurals = ['apples', 'bananas', 'cherries'] as const

/** The kinds of writes, one of which is drawn each time. */
const writes: readonly [(dice: Dice) => Sent, ...((dice: Dice) => Sent)[]] = [
  (dice) => [
    'POST',
    `${inNamespace(dice)}/configmaps`,
    { metadata: { name: nameOf(dice, 'm') }, data: { t: textOf(dice) } },
  ],
  (dice) => [
    'POST',
    `${inNamespace(dice)}/configmaps`,
    { metadata: { generateName: 'g-' }, data: { t: textOf(dice) } },
  ],
  (dice) => [
    'POST',
    `${inNamespace(dice)}/secrets`,
    { metadata: { name: nameOf(dice, 's') }, stringData: { t: textOf(dice) } },
  ],
  (dice) => {
    const name = nameOf(dice, 'm')
    return ['PUT', `${inNamespace(dice)}/configmaps/${name}`, { metadata: { name }, data: { t: textOf(dice) } }]
  },
  (dice) => {
    const name = nameOf(dice, 'm')
    const stale = { metadata: { name, resourceVersion: '1' }, data: { t: textOf(dice) } }
    return ['PUT', `${inNamespace(dice)}/configmaps/${name}`, stale]
  },
  (dice) => [
    'PATCH',
    `${inNamespace(dice)}/configmaps/${nameOf(dice, 'm')}`,
    { metadata: { labels: { l: 'a' } } },
    merge,
  ],
  (dice) => ['PATCH', `${inNamespace(dice)}/secrets/${nameOf(dice, 's')}`, { stringData: { u: textOf(dice) } }, merge],
  (dice) => {
    const patch = [{ op: 'add', path: '/data/u', value: textOf(dice) }]
    const type = ['content-type', 'application/json-patch+json']
    return ['PATCH', `${inNamespace(dice)}/configmaps/${nameOf(dice, 'm')}`, patch, type]
  },
  (dice) => {
    const name = nameOf(dice, 'm')
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { a: textOf(dice) } }
    const path = `${inNamespace(dice)}/configmaps/${name}?fieldManager=${dice.pick(['one', 'two'])}&force=true`
    return ['PATCH', path, body, ['content-type', 'application/apply-patch+yaml']]
  },
  (dice) => ['DELETE', `${inNamespace(dice)}/configmaps/${nameOf(dice, 'm')}`],
  (dice) => ['DELETE', `${inNamespace(dice)}/secrets/${nameOf(dice, 's')}`],
  (dice) => ['DELETE', `${inNamespace(dice)}/configmaps?labelSelector=l%3Da`],
  (dice) => (dice.once(6) ? ['DELETE', `${inNamespace(dice)}/secrets`] : ['GET', `${inNamespace(dice)}/secrets`]),
  // Objects that wait for a finalizer, and its end.
  (dice) => [
    'POST',
    `${inNamespace(dice)}/configmaps`,
    { metadata: { name: nameOf(dice, 'f'), finalizers: ['a.example/b'] } },
  ],
  (dice) => ['DELETE', `${inNamespace(dice)}/configmaps/${nameOf(dice, 'f')}`],
  (dice) => [
    'PATCH',
    `${inNamespace(dice)}/configmaps/${nameOf(dice, 'f')}`,
    { metadata: { finalizers: null } },
    merge,
  ],
  // Writes that change nothing.
  (dice) => ['POST', `${inNamespace(dice)}/configmaps?dryRun=All`, { metadata: { name: nameOf(dice, 'd') } }],
  (dice) => ['POST', `${inNamespace(dice)}/configmaps`, { metadata: { name: 'Not a name' } }],
  (dice) => ['DELETE', `${inNamespace(dice)}/configmaps/${nameOf(dice, 'm')}?dryRun=All`],
  // Namespaces, deleted with their content.
  (dice) => ['POST', `${core}/namespaces`, { metadata: { name: dice.pick(['n0', 'n1']) } }],
  (dice) => ['POST', `${core}/namespaces`, { metadata: { name: dice.pick(['n0', 'n1']) } }],
  (dice) =>
    dice.once(3) ? ['DELETE', `${core}/namespaces/${dice.pick(['n0', 'n1'])}`] : ['GET', `${core}/namespaces`],
  // Definitions with their objects.
  (dice) => ['POST', crdPath, definition(dice.pick(plurals))],
  (dice) => (dice.once(3) ? ['DELETE', `${crdPath}/${dice.pick(plurals)}.example.com`] : ['GET', crdPath]),
  (dice) => {
    const plural = dice.pick(plurals)
    const body = { apiVersion: 'example.com/v1', kind: plural.toUpperCase(), metadata: { name: nameOf(dice, 'c') } }
    return ['POST', `/apis/example.com/v1/namespaces/default/${plural}`, { ...body, spec: { t: textOf(dice) } }]
  },
  (dice) => {
    const path = `/apis/example.com/v1/namespaces/default/${dice.pick(plurals)}/${nameOf(dice, 'c')}`
    return ['PATCH', `${path}/status`, { status: { t: textOf(dice) } }, merge]
  },
  (dice) => ['DELETE', `/apis/example.com/v1/namespaces/default/${dice.pick(plurals)}/${nameOf(dice, 'c')}`],
  // Workloads with their subresources, and what belongs to them.
  (dice) => ['POST', appsPath(dice), deployment(nameOf(dice, 'w'))],
  (dice) => ['PATCH', `${appsPath(dice)}/${nameOf(dice, 'w')}/scale`, { spec: { replicas: dice.below(9) } }, merge],
  (dice) => {
    const conditions = [{ type: 'Available', status: 'True', reason: 'R', message: textOf(dice) }]
    return ['PATCH', `${appsPath(dice)}/${nameOf(dice, 'w')}/status`, { status: { conditions } }, merge]
  },
  (dice) => {
    const policy = dice.pick(['Foreground', 'Background', 'Orphan'])
    return ['DELETE', `${appsPath(dice)}/${nameOf(dice, 'w')}?propagationPolicy=${policy}`]
  },
  (dice) => {
    const owner = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      name: nameOf(dice, 'm'),
      uid: '7f7a0a4e-0000-4000-8000-000000000000',
    }
    // Its owner is not there: the garbage collector deletes it.
    return [
      'POST',
      `${inNamespace(dice)}/configmaps`,
      { metadata: { name: nameOf(dice, 'o'), ownerReferences: [owner] } },
    ]
  },
  (dice) => ['POST', `${inNamespace(dice)}/serviceaccounts`, { metadata: { name: nameOf(dice, 'a') } }],
  (dice) => ['POST', `${inNamespace(dice)}/serviceaccounts/${nameOf(dice, 'a')}/token`, { spec: { audiences: ['a'] } }],
  (dice) => ['DELETE', `${inNamespace(dice)}/serviceaccounts/${nameOf(dice, 'a')}`],
  (dice) => {
    const involvedObject = { kind: 'ConfigMap', name: 'm', namespace: 'default' }
    const event = {
      metadata: { generateName: 'e-' },
      involvedObject,
      reason: 'R',
      message: textOf(dice),
      type: 'Normal',
    }
    return ['POST', `${core}/namespaces/default/events`, event]
  },
  (dice) => {
    const name = dice.pick(['l0', 'l1'])
    const spec = { holderIdentity: String(dice.below(1000)), renewTime: '2026-01-01T00:00:00.000000Z' }
    const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
    return dice.once(2)
      ? ['POST', leases, { metadata: { name }, spec }]
      : ['PUT', `${leases}/${name}`, { metadata: { name }, spec }]
  },
  // Objects of the base layer: deleted, changed, made again.
  (dice) => ['DELETE', `${clusterRoles}/${dice.pick(['view', 'edit'])}`],
  (dice) => [
    'PATCH',
    `${clusterRoles}/${dice.pick(['view', 'edit'])}`,
    { metadata: { labels: { l: textOf(dice).slice(0, 40) } } },
    merge,
  ],
  (dice) => ['POST', clusterRoles, { metadata: { name: dice.pick(['view', 'edit']) }, rules: [] }],
  (dice) => ['DELETE', `${inNamespace(dice)}/configmaps/kube-root-ca.crt`],
]

describe('usage of logical clusters and a recount of everything', function () {
  this.timeout(600_000)
  const dice = diceOf(seed)
  let instance: KcpInstance
  /** `below` shares the limits of `team`; `own` has its own, taken out of them. */
  let team: Tenant
  let below: Tenant
  let own: Tenant
  before(async () => {
    instance = await startInstance(['--usage-every', '2'])
    team = await instance.tenant('team')
    below = await instance.tenant('below')
    own = await instance.tenant('own')
    for (const name of ['below', 'own']) await change(name, { parentRef: { name: 'team' } })
    await change('team', { limits: limits.team })
    await change('own', { limits: limits.own })
  })
  after(async () => {
    await instance[Symbol.asyncDispose]()
  })

  const logicalClusters = '/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters'
  const change = async (name: string, spec: object): Promise<void> => {
    const path = `${logicalClusters}/${name}`
    const { status, text } = await instance.admin.http.request('PATCH', path, { body: { spec }, headers: merge })
    expect(status, text).to.equal(200)
  }
  const read = async (path: string): Promise<Record<string, unknown>> => {
    const { status, text, json } = await instance.admin.http.request('GET', path)
    expect(status, `${path}: ${text}`).to.equal(200)
    return json()
  }
  const clusterOf = async (name: string): Promise<LogicalCluster> =>
    (await read(`${logicalClusters}/${name}`)) as unknown as LogicalCluster

  /** Random writes by all clients; those whose connection breaks are not repeated. */
  const writeMuch = async (count: number): Promise<Map<number, number>> => {
    const answers = new Map<number, number>()
    let left = count
    const run = async (): Promise<void> => {
      while (left-- > 0) {
        const tenant = dice.pick([team, below, own])
        const [method, path, body, headers] = dice.pick(writes)(dice)
        const options = { ...(body !== undefined && { body }), ...(headers !== undefined && { headers }) }
        const answer = await tenant.http.request(method, `${tenant.base}${path}`, options).catch(() => undefined)
        const status = answer?.status ?? 0
        answers.set(status, (answers.get(status) ?? 0) + 1)
        if (answer === undefined) await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
    await Promise.all(Array.from({ length: clients }, run))
    return answers
  }

  /** Takes the finalizers away that only this test sets, so that nothing waits for them. */
  const release = async (): Promise<void> => {
    for (const { base } of [team, below, own]) {
      const { items } = (await read(`${base}${core}/configmaps`)) as {
        items: { metadata: { name: string; namespace: string; finalizers?: string[] } }[]
      }
      for (const { metadata } of items)
        if (metadata.finalizers !== undefined) {
          const path = `${base}${core}/namespaces/${metadata.namespace}/configmaps/${metadata.name}`
          await instance.admin.http.request('PATCH', path, { body: { metadata: { finalizers: null } }, headers: merge })
        }
    }
  }

  /** What the metrics say of a logical cluster; each is named, because there are fewer than 50. */
  const told = async (): Promise<Map<string, Counted>> => {
    const { text } = await instance.admin.http.request('GET', '/metrics')
    const valuesOf = (metric: string): [string, number][] =>
      [...text.matchAll(new RegExp(`^${metric}\\{logical_cluster="([^"]+)"\\} (\\d+)$`, 'gm'))].map(
        ([, name = '', value]) => [name, Number(value)],
      )
    const bytes = new Map(valuesOf('kcp_usage_object_bytes_top'))
    return new Map(
      valuesOf('kcp_usage_objects_top').map(([name, objects]) => [name, { objects, bytes: bytes.get(name) ?? 0 }]),
    )
  }

  /** Lists everything that the logical cluster serves and has stored itself; undefined while something is being deleted. */
  const listed = async (name: string): Promise<{ objects: number; crds: number } | undefined> => {
    const base = `/clusters/${name}`
    const paths = new Set<string>()
    const groups = (await read(`${base}/apis`)) as { groups: { preferredVersion: { groupVersion: string } }[] }
    for (const part of [
      core,
      ...groups.groups.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`),
    ]) {
      // Events have two names.
      if (part.startsWith('/apis/events.k8s.io')) continue
      const { status, text } = await instance.admin.http.request('GET', `${base}${part}`)
      if (status !== 200) return undefined
      const { resources } = JSON.parse(text) as { resources: { name: string; verbs: string[] }[] }
      for (const { name: resource, verbs } of resources)
        // LogicalClusters are children, which are stored elsewhere.
        if (
          verbs.includes('list') &&
          verbs.includes('create') &&
          !resource.includes('/') &&
          resource !== 'logicalclusters'
        )
          paths.add(`${part}/${resource}`)
    }
    let [objects, crds] = [0, 0]
    for (const path of paths) {
      const { status, text } = await instance.admin.http.request('GET', `${base}${path}`)
      if (status !== 200) return undefined
      const { items } = JSON.parse(text) as {
        items: { metadata: { resourceVersion?: string; deletionTimestamp?: string } }[]
      }
      for (const { metadata } of items) {
        // Objects of the base layer have the revision 1.
        if (['1', '0', ''].includes(metadata.resourceVersion ?? '')) continue
        if (metadata.deletionTimestamp !== undefined) return undefined
        objects++
        if (path === crdPath) crds++
      }
    }
    return { objects, crds }
  }

  /** Resolves when controllers have ended their work, and the metrics have the number of a full listing. */
  const settled = async (names: readonly string[]): Promise<Map<string, Counted & { crds: number }>> => {
    let found = new Map<string, Counted & { crds: number }>()
    let problem = ''
    const isSettled = async (): Promise<boolean> => {
      const before = await told()
      found = new Map()
      problem = ''
      for (const name of names) {
        const recount = await listed(name)
        const counted = before.get(name) ?? { objects: 0, bytes: 0 }
        if (recount === undefined) problem = `something in ${name} is being deleted`
        else if (recount.objects !== counted.objects)
          problem = `${name}: kcp counts ${counted.objects} objects, a listing has ${recount.objects}`
        else found.set(name, { ...counted, crds: recount.crds })
        if (problem !== '') return false
      }
      await new Promise((resolve) => setTimeout(resolve, within.intervalMs))
      const after = await told()
      problem = 'the numbers change all the time'
      return names.every((name) => after.get(name)?.bytes === before.get(name)?.bytes)
    }
    await waitFor(isSettled, { what: 'usage to be a recount', ...within }).catch((cause: unknown) => {
      throw new Error(`seed ${seed}: ${problem}`, { cause })
    })
    return found
  }

  /** What the database has, while kcp does not run. */
  const inDatabase = async (id: ClusterId): Promise<Counted> => {
    const file = join(instance.rootDir, 'data', 'kcp.db')
    await using store = await openSqliteStore({
      file,
      sealKeyFile: join(instance.rootDir, 'seal.key'),
      mayBeNew: false,
    })
    const { items } = await store.list({ cluster: id }, { signal: AbortSignal.timeout(30_000) })
    // A deleted object of the base layer leaves a tombstone, `null`.
    const objects = items.filter(({ value }) => Buffer.from(value).toString() !== 'null')
    // In memory and in answers, the revision is the first member of the metadata.
    const bytesOf = ({ value, revision }: (typeof items)[number]): number =>
      value.length + `"resourceVersion":"${String(revision)}",`.length
    return { objects: objects.length, bytes: objects.reduce((sum, object) => sum + bytesOf(object), 0) }
  }

  const amount = (message: string, unit: string): number =>
    Number(new RegExp(`used: ${unit}=(\\d+)`).exec(message)?.[1])
  /** Creates until the limit of `team` refuses; the number of successes and the refusal. */
  const untilRefused = async (
    of: RegExp,
    body: (round: number) => Sent,
  ): Promise<{ made: Sent[]; message: string }> => {
    const made: Sent[] = []
    for (let round = 0; round < 1000; round++) {
      const sent = body(round)
      const { status, text } = await below.http.request(sent[0], `${below.base}${sent[1]}`, { body: sent[2] ?? {} })
      if (status === 403) {
        expect(text).to.match(of)
        return { made, message: text }
      }
      expect(status, text).to.equal(201)
      made.push(sent)
    }
    throw new Error('no limit was enforced')
  }

  for (let round = 0; round < rounds({ short: 1, long: 8 }); round++)
    it(`are equal after ${writesOfRound} random writes and kill -9 (round ${round + 1}, seed ${seed})`, async () => {
      // The half before a crash, with a snapshot and a copy in between.
      const file = join(instance.rootDir, `snapshot-${round}.kcp.tar.zst`)
      const writing = writeMuch(writesOfRound / 2)
      await runKcp(['snapshot', 'create', 'team', '-o', file, '--root-dir', instance.rootDir])
      await writing
      const dying = writeMuch(100)
      await instance.process.kill()
      await instance.process.start()
      await dying
      const answers = await writeMuch(writesOfRound / 2)
      expect([...answers.keys()], 'accepted and refused writes').to.include.members([200, 201, 403, 404, 409, 422])
      expect(answers.get(500), 'no write is a fault').to.equal(undefined)
      // A restore deletes what was made since, and waits for its finalizers.
      await release()
      await runKcp(['snapshot', 'restore', file, '--into', 'team', '--yes', '--root-dir', instance.rootDir], {
        expectCode: 'any',
      })
      const copy = `copy-${round}`
      const body = {
        apiVersion: 'kcp.dev/v1alpha1',
        kind: 'LogicalCluster',
        metadata: { name: copy },
        spec: { source: { logicalClusterRef: { name: 'below' } } },
      }
      expect((await instance.admin.http.request('POST', logicalClusters, { body })).status).to.equal(201)
      const isReady = async (): Promise<boolean> =>
        (await clusterOf(copy)).status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ??
        false
      await waitFor(isReady, { what: 'the copy', ...within })

      await release()
      const names = ['team', 'below', 'own', copy]
      const first = await settled(names)
      const sharing = ['team', 'below'].map((name) => first.get(name) ?? { objects: 0, bytes: 0, crds: 0 })
      const sumOf = (of: (counted: Counted & { crds: number }) => number): number =>
        sharing.reduce((sum, counted) => sum + of(counted), 0)

      // What a refusal says is the sum that was kept up write by write.
      const large = (at: number): Sent => [
        'POST',
        `${core}/namespaces/default/configmaps`,
        { metadata: { name: `large-${at}` }, data: { t: 'x'.repeat(900_000) } },
      ]
      const full = await untilRefused(/exceeded quota: storage of logical cluster \\"team\\"/, large)
      const withLarge = await settled(names)
      const storage = ['team', 'below'].reduce((sum, name) => {
        const { objects = 0, bytes = 0 } = withLarge.get(name) ?? {}
        return sum + bytes + objects * objectCharge
      }, 0)
      expect(amount(full.message, 'bytes'), `seed ${seed}: storage in a refusal`).to.equal(storage)
      for (const [, path, sent] of full.made) {
        const { name } = (sent as { metadata: { name: string } }).metadata
        expect((await below.http.request('DELETE', `${below.base}${path}/${name}`)).status).to.equal(200)
      }
      const many = await untilRefused(/exceeded quota: objects of logical cluster \\"team\\"/, (at) => [
        'POST',
        `${core}/namespaces/default/configmaps`,
        { metadata: { name: `fill-${at}` } },
      ])
      expect(sumOf(({ objects }) => objects) + many.made.length, `seed ${seed}: objects at the limit`).to.equal(
        limits.team.objects - limits.own.objects,
      )
      expect(amount(many.message, 'objects')).to.equal(limits.team.objects - limits.own.objects)
      expect(
        (await below.http.request('DELETE', `${below.base}${core}/namespaces/default/configmaps`)).status,
      ).to.equal(200)
      const kinds = await untilRefused(/exceeded quota: crds of logical cluster \\"team\\"/, (at) => [
        'POST',
        crdPath,
        definition(`fills${'abcdefgh'[at]}`),
      ])
      expect(sumOf(({ crds }) => crds) + kinds.made.length, `seed ${seed}: CRDs at the limit`).to.equal(
        limits.team.crds - limits.own.crds,
      )

      // The first status after limits were set has no steps.
      await change('team', { limits: null })
      const last = await settled(names)
      await change('team', { limits: limits.team })
      const expected = {
        objects: limits.own.objects + ['team', 'below'].reduce((sum, name) => sum + (last.get(name)?.objects ?? 0), 0),
        storage: String(
          256 * 1024 +
            ['team', 'below'].reduce(
              (sum, name) => sum + (last.get(name)?.bytes ?? 0) + (last.get(name)?.objects ?? 0) * objectCharge,
              0,
            ),
        ),
        crds: limits.own.crds + ['team', 'below'].reduce((sum, name) => sum + (last.get(name)?.crds ?? 0), 0),
      }
      let usage: object = {}
      const isTold = async (): Promise<boolean> => {
        const { objects, storage: stored, crds } = (await clusterOf('team')).status?.usage ?? {}
        usage = { objects, storage: stored, crds }
        return objects === expected.objects && stored === expected.storage && crds === expected.crds
      }
      await waitFor(isTold, { what: 'status.usage', ...within }).catch(() =>
        expect(usage, `seed ${seed}`).to.deep.equal(expected),
      )

      // The third count: the database after a crash, and what a new process reads of it.
      const ids = await Promise.all(
        names.map(async (name) => [name, (await clusterOf(name)).status?.id ?? ''] as const),
      )
      for (const when of ['as it was counted write by write', 'as a new process has read it']) {
        const before = await settled(names)
        await instance.process.kill()
        for (const [name, id] of ids) {
          const { objects, bytes } = before.get(name) ?? { objects: -1, bytes: -1 }
          const stored = await inDatabase(id as ClusterId)
          expect(stored, `seed ${seed}: ${name} in the database, ${when}`).to.deep.equal({ objects, bytes })
        }
        await instance.process.start()
      }
      expect((await instance.admin.http.request('DELETE', `${logicalClusters}/${copy}`)).status).to.equal(200)
      await waitFor(async () => !(await told()).has(copy), { what: 'the copy to be gone from usage', ...within })
      for (const { base, http } of [team, below]) await http.request('DELETE', `${base}${crdPath}`)
    })
})
